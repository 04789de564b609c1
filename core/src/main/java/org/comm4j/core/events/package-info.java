/// What a JDK Flight Recorder can record of a rank.
package org.comm4j.core.events;
