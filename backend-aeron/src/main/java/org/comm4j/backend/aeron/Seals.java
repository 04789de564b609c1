package org.comm4j.backend.aeron;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.comm4j.api.CommConfig;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.Authenticator;

/// The seals of a launch's messages, or none where nobody asked for them. Their keys follow from
/// the launch's secret and from what ranks have told each other when they met, so they are new in
/// each launch, and who has only listened to that does not know them.
final class Seals {
  private static final byte[] PURPOSE = "comm4j aeron".getBytes(StandardCharsets.US_ASCII);

  private final List<Address> ranks;
  private final boolean isOn;
  private final Authenticator secret;

  private Seals(List<Address> ranks, boolean isOn, Authenticator secret) {
    this.ranks = ranks;
    this.isOn = isOn;
    this.secret = secret;
  }

  /// @param ranks all of them
  /// @param self this one
  /// @throws TransportFailedException if not all ranks want the same, or there is no secret
  static Seals of(List<Address> ranks, int self, CommConfig config) {
    boolean isOn = ranks.get(self).isSealed();
    for (int rank = 0; rank < ranks.size(); rank++) {
      if (ranks.get(rank).isSealed() != isOn) {
        throw new TransportFailedException(
            "COMM_AERON_INTEGRITY: %s on rank %d, %s on rank %d (expected: the same on all ranks)"
                .formatted(text(isOn), self, text(!isOn), rank),
            null);
      }
    }
    return new Seals(ranks, isOn, isOn ? Authenticator.of(config) : Authenticator.NONE);
  }

  private static String text(boolean isOn) {
    return isOn ? "mac" : "none";
  }

  /// Of what one rank sends to another one, of which this rank is one.
  Seal of(int from, int to) {
    if (!isOn) {
      return Seal.none();
    }
    byte[] sender = ranks.get(from).secretBytes();
    byte[] receiver = ranks.get(to).secretBytes();
    ByteBuffer purpose =
        ByteBuffer.allocate(PURPOSE.length + 2 * Integer.BYTES + sender.length + receiver.length)
            .put(PURPOSE)
            .putInt(from)
            .putInt(to)
            .put(sender)
            .put(receiver);
    return secret
        .keyFor(purpose.array())
        .map(Seal::of)
        .orElseThrow(() ->
            new TransportFailedException(
                "COMM_AERON_INTEGRITY: mac needs a secret to derive keys from, and there is none; set COMM_SECRET_FILE on all ranks, or start them with comm-cli run",
                null));
  }
}
