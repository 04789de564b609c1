package org.comm4j.api;

import java.util.List;

/// Waiting for one of many requests: looks at each in turn, gives the core away between rounds.
final class RequestWait {
  private RequestWait() {}

  static int any(List<? extends Request> requests) {
    while (true) {
      for (int index = 0; index < requests.size(); index++) {
        if (requests.get(index).isDone()) {
          return index;
        }
      }
      Thread.yield();
    }
  }
}
