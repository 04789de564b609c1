package org.comm4j.backend.aeron;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import javax.crypto.Mac;
import javax.crypto.SecretKey;
import org.jspecify.annotations.Nullable;

/// Proves of each message from one rank to another that it is what was sent, and the next one: the
/// first 16 bytes of the HMAC-SHA256 of its number, which is not sent, and its content, behind it.
/// So what was altered, is not of that rank, came before, or comes after one that is missing, does
/// not fit. Each direction of each pair has a key of its own.
///
/// One for each direction; not thread-safe.
final class Seal {
  private static final int BYTES = 16;

  private final @Nullable Mac mac; // null: messages carry none
  private final byte[] number = new byte[Long.BYTES];
  private final byte[] proof;
  private long messages;

  private Seal(@Nullable Mac mac) {
    this.mac = mac;
    this.proof = new byte[mac == null ? 0 : mac.getMacLength()];
  }

  /// Of messages that carry nothing more.
  static Seal none() {
    return new Seal(null);
  }

  /// @param key of this direction
  static Seal of(SecretKey key) {
    try {
      Mac mac = Mac.getInstance(key.getAlgorithm());
      mac.init(key);
      return new Seal(mac);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every JDK has " + key.getAlgorithm(), e);
    }
  }

  /// What it adds to a message.
  int bytes() {
    return mac == null ? 0 : BYTES;
  }

  /// The number of messages so far.
  long messages() {
    return messages;
  }

  /// Writes it behind the next message.
  ///
  /// @param memory of this process alone: what others may change meanwhile proves nothing
  /// @param at where the message begins
  /// @param messageBytes of the message alone
  void put(MemorySegment memory, long at, int messageBytes) {
    if (mac != null) {
      prove(mac, memory, at, messageBytes);
      MemorySegment.copy(proof, 0, memory, ValueLayout.JAVA_BYTE, at + messageBytes, BYTES);
    }
  }

  /// Whether the one behind the next message is right.
  ///
  /// @param memory of this process alone
  /// @param at where the message begins
  /// @param messageBytes of the message alone
  boolean isRight(MemorySegment memory, long at, int messageBytes) {
    if (mac == null) {
      return true;
    }
    if (messageBytes < 0) {
      return false;
    }
    prove(mac, memory, at, messageBytes);
    byte[] sent = new byte[BYTES];
    MemorySegment.copy(memory, ValueLayout.JAVA_BYTE, at + messageBytes, sent, 0, BYTES);
    return MessageDigest.isEqual(sent, Arrays.copyOf(proof, BYTES));
  }

  private void prove(Mac mac, MemorySegment memory, long at, int messageBytes) {
    try {
      ByteBuffer.wrap(number).putLong(messages++);
      mac.update(number);
      mac.update(memory.asSlice(at, messageBytes).asByteBuffer());
      mac.doFinal(proof, 0);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e); // there is room for it
    }
  }
}
