package org.comm4j.backend.aeron;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/// Where a rank receives. What it receives has a stream and a session of its own for each sender;
/// both follow from a secret that only the ranks of the launch know: datagrams with others are
/// thrown away before any memory is given to them.
///
/// @param host an address, not a name
/// @param secret 16 random bytes
/// @param mtu the most bytes of a datagram to there
/// @param termBytes of its logs
/// @param driver names the media driver, where that serves other ranks of its host too and they may
///   talk through memory; else empty
/// @param isSealed whether it sends and expects messages with a [Seal]
record Address(
    String host, int port, String secret, int mtu, int termBytes, String driver, boolean isSealed) {
  static final int SECRET_BYTES = 16;

  /// The numbers by which Aeron tells one sender's messages from another's.
  record Ids(int stream, int session) {}

  /// {@return an address as it stands before a port}
  static String textOf(InetAddress host) {
    String text = host.getHostAddress();
    return host instanceof Inet6Address ? "[" + text + "]" : text;
  }

  static Address of(
      InetAddress host,
      int port,
      byte[] secret,
      Dimensions dimensions,
      String driver,
      boolean isSealed) {
    return new Address(
        textOf(host),
        port,
        HexFormat.of().formatHex(secret),
        dimensions.mtu(),
        dimensions.termBytes(),
        driver,
        isSealed);
  }

  byte[] secretBytes() {
    return HexFormat.of().parseHex(secret);
  }

  /// What a rank sends here with.
  Ids from(int rank) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      digest.update(secretBytes());
      ByteBuffer hash =
          ByteBuffer.wrap(digest.digest(ByteBuffer.allocate(Integer.BYTES).putInt(rank).array()));
      return new Ids(hash.getInt(), hash.getInt());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e); // every Java has it
    }
  }

  /// Whether ranks there and here talk through the memory of one media driver.
  boolean sharesDriver(Address other) {
    return !driver.isEmpty() && driver.equals(other.driver);
  }

  byte[] toBytes() {
    var bytes = new ByteArrayOutputStream();
    try (var out = new DataOutputStream(bytes)) {
      out.writeUTF(host);
      out.writeInt(port);
      out.writeUTF(secret);
      out.writeInt(mtu);
      out.writeInt(termBytes);
      out.writeUTF(driver);
      out.writeBoolean(isSealed);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }

  static Address of(byte[] bytes) {
    try (var in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      return new Address(
          in.readUTF(),
          in.readInt(),
          in.readUTF(),
          in.readInt(),
          in.readInt(),
          in.readUTF(),
          in.readBoolean());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public String toString() {
    return host + ":" + port; // the secret is nobody's business
  }
}
