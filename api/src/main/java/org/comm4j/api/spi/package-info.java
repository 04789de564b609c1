/// What backends implement. Programs don't need it.
///
/// A backend registers a [org.comm4j.api.spi.BackendProvider] as a service. Discovery lists every
/// provider without loading native code; opening one gives a
/// [org.comm4j.api.spi.BackendCommunicator], which the API wraps: arguments, state and threads are
/// checked before a backend is called, so a backend checks nothing twice.
package org.comm4j.api.spi;
