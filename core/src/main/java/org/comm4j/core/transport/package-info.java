/// What a wire backend implements: [org.comm4j.core.transport.Transport] and, where ranks can read
/// each other's memory, [org.comm4j.core.transport.PeerMemory]. Everything else the engine does.
package org.comm4j.core.transport;
