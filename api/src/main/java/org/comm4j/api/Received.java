package org.comm4j.api;

/// What a receive, a sendReceive or a probe got.
///
/// @param source the rank that sent the message
/// @param tag the message's tag
/// @param count how many elements it has, of the message's own type
public record Received(int source, int tag, long count) {}
