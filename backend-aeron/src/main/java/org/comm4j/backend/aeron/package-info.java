/// The backend `aeron`: a [org.comm4j.core.transport.Transport] over Aeron, which brings messages
/// over UDP in order and without loss. By default the media driver is a part of each rank's
/// process.
package org.comm4j.backend.aeron;
