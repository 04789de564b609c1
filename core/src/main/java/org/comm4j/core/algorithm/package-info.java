/// The algorithms: pure functions from a shape, a rank and a size to a plan.
package org.comm4j.core.algorithm;
