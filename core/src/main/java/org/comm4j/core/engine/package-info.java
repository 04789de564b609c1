/// Runs plans: one engine per session, for messages and for peers' memory.
package org.comm4j.core.engine;
