/// Chooses the algorithm for a shape.
package org.comm4j.core.select;
