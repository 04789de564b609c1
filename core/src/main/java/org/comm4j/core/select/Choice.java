package org.comm4j.core.select;

import org.comm4j.core.algorithm.Algorithm;

/// What [Selector] chose.
///
/// @param algorithm supports the shape
/// @param reason why, as a sentence for `explain`
public record Choice(Algorithm algorithm, String reason) {}
