/// The conformance kit: contracts as JUnit 5 classes. A backend's tests extend those that apply to
/// it.
package org.comm4j.tck;
