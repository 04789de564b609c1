/// The arithmetic of reductions: [org.comm4j.core.kernel.Kernel] combines, widens and rounds
/// elements of every type by every operator, [org.comm4j.core.kernel.Conversions] defines the small
/// floats. Nothing else in the library calculates with elements.
package org.comm4j.core.kernel;
