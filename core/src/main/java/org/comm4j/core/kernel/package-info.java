/// The arithmetic of reductions: [org.comm4j.core.kernel.Kernel] combines, widens and rounds
/// elements of every type by every operator, `Conversions` defines the small floats. Nothing else
/// on the host calculates with elements. And [org.comm4j.core.kernel.StreamingCopy] copies past the
/// caches.
package org.comm4j.core.kernel;
