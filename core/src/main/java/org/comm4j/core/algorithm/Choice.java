package org.comm4j.core.algorithm;

/// One algorithm for a shape, of those that can do it.
///
/// @param algorithm supports the shape
/// @param reason why, as a sentence for `explain`
public record Choice(Algorithm algorithm, String reason) {}
