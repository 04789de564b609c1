/// Collective communication: what programs compile against.
///
/// A program gets a [org.comm4j.api.Communicator] from `Communicators` (one rank per process, or
/// whatever launched it) or from `LocalGroup` (ranks as threads), describes memory as
/// [org.comm4j.api.CommData], and calls collectives. Which technology moves the bytes is a
/// dependency on the class path and one setting ([org.comm4j.api.CommConfig]).
package org.comm4j.api;
