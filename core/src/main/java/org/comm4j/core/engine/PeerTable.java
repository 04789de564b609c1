package org.comm4j.core.engine;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/// State per peer, made when it is first asked for: an array for groups of usual size, a map for
/// thousands of ranks of which one talks to a few only.
final class PeerTable<T> {
  private static final int LARGEST_ARRAY = 256;

  private final IntFunction<T> factory;
  private final @Nullable Object @Nullable [] array;
  private final Map<Integer, T> map;

  PeerTable(int size, IntFunction<T> factory) {
    this.factory = factory;
    this.array = size <= LARGEST_ARRAY ? new Object[size] : null;
    this.map = size <= LARGEST_ARRAY ? Map.of() : new HashMap<>();
  }

  @SuppressWarnings("unchecked")
  T get(int peer) {
    if (array == null) {
      return map.computeIfAbsent(peer, factory::apply);
    }
    Object value = array[peer];
    if (value == null) {
      value = factory.apply(peer);
      array[peer] = value;
    }
    return (T) value;
  }

  @SuppressWarnings("unchecked")
  void forEach(Consumer<T> action) {
    if (array == null) {
      map.values().forEach(action);
      return;
    }
    for (Object value : array) {
      if (value != null) {
        action.accept((T) value);
      }
    }
  }
}
