/// The algorithms: pure functions from a shape, a rank and a size to a plan; and which of them is
/// chosen where the user says nothing.
package org.comm4j.core.algorithm;
