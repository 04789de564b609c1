package org.comm4j.core.session;

import org.comm4j.api.JoinException;
import org.comm4j.api.spi.Session.Member;

/// What travels over a control connection: the events of the history and, below, what a connection
/// itself needs. [FrameCodec] has the bytes.
sealed interface Frame permits Event, Frame.Control {
  /// Everything that is not history.
  sealed interface Control extends Frame {}

  /// The server's first word.
  ///
  /// @param protocol the version that it speaks
  /// @param nonce for the rank's proof; empty where none is asked for
  /// @param hostId random, names the server; means nothing where the protocol is another one
  record Hello(int protocol, byte[] nonce, String hostId) implements Control {}

  /// A rank's first word.
  ///
  /// @param nonce for the host's proof; empty where none is asked for
  /// @param proof that the rank knows the secret; may be empty
  record Join(JoinRequest request, byte[] nonce, byte[] proof) implements Control {
    /// Where nothing is proved.
    Join(JoinRequest request) {
      this(request, new byte[0], new byte[0]);
    }

    Join withProof(byte[] other) {
      return new Join(request, nonce, other);
    }
  }

  /// A rank's first word in a protocol that we don't speak.
  record ForeignJoin(int protocol) implements Control {}

  /// The join is in order; the answer comes when all are there.
  ///
  /// @param hostRank the rank that keeps the history, or [#NO_RANK]
  /// @param host who keeps the history, for people
  /// @param proof that the host knows the secret; may be empty
  record Accepted(int hostRank, String host, byte[] proof) implements Control {}

  /// The join has failed.
  record Refused(JoinException.Reason reason, String message) implements Control {}

  /// The group before this one has not ended yet: come again.
  record Retry(String why) implements Control {}

  /// A rank that takes part; one for each precedes [Welcome].
  record Joined(Member member) implements Control {}

  /// All ranks are there.
  record Welcome(String sessionId) implements Control {}

  /// Still alive.
  record Heartbeat() implements Control {}

  /// The sender has given up the receiver.
  record Lost(String evidence) implements Control {}

  /// Stands for a host that is not a rank.
  int NO_RANK = -1;
}
