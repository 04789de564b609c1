/// Plans as data: a [org.comm4j.core.schedule.Schedule] is rounds of steps over slices. It can be
/// printed, costed, run by the engine, and, by the tests, checked symbolically; it knows no
/// transport.
package org.comm4j.core.schedule;
