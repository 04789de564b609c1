/// A network of simulated ranks in one thread with virtual time: runs the real engine, for tests
/// and for questions about thousands of ranks.
package org.comm4j.core.sim;
