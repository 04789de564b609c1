/// Sessions: how the ranks of a launch find each other, exchange small messages and hear of deaths.
///
/// A session is one totally ordered history of [org.comm4j.core.session.Event]s. Every rank replays
/// it, so all of them know the same, in the same order, and what an exchange or an agreement
/// answers is a function of the history. That is [org.comm4j.core.session.ReplicatedSession]; the
/// three kinds of session differ only in who keeps the history: a lock in memory
/// ([org.comm4j.core.session.InMemorySessions]), a process behind a port
/// ([org.comm4j.core.session.SessionServer]) or a file.
package org.comm4j.core.session;
