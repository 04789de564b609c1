/// Plans as data: a [org.comm4j.core.schedule.Schedule] is rounds of steps over slices. It can be
/// printed, checked symbolically, costed, and run by the engine; it knows no transport.
package org.comm4j.core.schedule;
