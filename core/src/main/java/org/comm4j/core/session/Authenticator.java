package org.comm4j.core.session;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;
import javax.crypto.KDF;
import javax.crypto.Mac;
import javax.crypto.SecretKey;
import javax.crypto.spec.HKDFParameterSpec;
import org.comm4j.api.CommConfig;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.Secret;
import org.comm4j.api.spi.OptionText;
import org.jspecify.annotations.Nullable;

/// How the two ends of a control connection prove to each other that they know the secret of the
/// launch. The secret itself is not sent: each end sends a nonce, and then the HMAC-SHA256 of both
/// nonces and of the whole join, under a key that HKDF makes of the secret. Since the proof of a
/// rank and that of the host are of different words, neither can be used as the other; since the
/// nonces are new each time, neither can be used again.
///
/// Without a secret nothing is proved, and only loopback addresses may be used, unless [#INSECURE].
///
/// Immutable and thread-safe.
public final class Authenticator {
  /// The option by which a user accepts that anybody on the network may join: `true`.
  public static final String INSECURE = "COMM_SESSION_INSECURE";

  /// For sessions that nothing but this host reaches.
  public static final Authenticator NONE = new Authenticator(null, 0, false);

  static final int NONCE_BYTES = 32;
  static final int PROOF_BYTES = 32;

  /// Shorter ones could be guessed by whoever has listened.
  private static final int FEWEST_BYTES = 16;

  private static final String MAC = "HmacSHA256";
  private static final String KEYS = "HKDF-SHA256";
  private static final String MAKE_ONE =
      "give all ranks a COMM_SECRET_FILE, made with (umask 77; head -c 32 /dev/urandom | base64 > FILE)";

  private static final byte[] NOTHING = new byte[0];
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final System.Logger LOG = System.getLogger(Authenticator.class.getName());

  private static final Set<PosixFilePermission> OF_OTHERS =
      EnumSet.complementOf(
          EnumSet.of(
              PosixFilePermission.OWNER_READ,
              PosixFilePermission.OWNER_WRITE,
              PosixFilePermission.OWNER_EXECUTE));

  private final @Nullable SecretKey key;
  private final int secretBytes;
  private final boolean insecure;

  /// Who proves.
  enum Role {
    RANK,
    HOST
  }

  private Authenticator(@Nullable SecretKey key, int secretBytes, boolean insecure) {
    this.key = key;
    this.secretBytes = secretBytes;
    this.insecure = insecure;
  }

  /// {@return what a configuration asks for}
  ///
  /// @param config with or without a secret or the file of one, which is read now
  /// @throws JoinException if the file can't be read or may be read by others (`CONFIGURATION`)
  public static Authenticator of(CommConfig config) {
    boolean insecure = isInsecure(config);
    byte[] secret =
        config
            .secretFile()
            .map(Authenticator::read)
            .or(() -> config.secret().map(Secret::bytes))
            .orElse(NOTHING);
    if (secret.length == 0) {
      return insecure ? new Authenticator(null, 0, true) : NONE;
    }
    try {
      byte[] purpose = "comm4j session".getBytes(StandardCharsets.US_ASCII);
      SecretKey key = derive(HKDFParameterSpec.ofExtract().addIKM(secret), purpose);
      return new Authenticator(key, secret.length, insecure);
    } finally {
      Arrays.fill(secret, (byte) 0);
    }
  }

  private static boolean isInsecure(CommConfig config) {
    try {
      return OptionText.of(config, INSECURE).map(OptionText::flag).orElse(false);
    } catch (IllegalArgumentException e) {
      throw new JoinException(Reason.CONFIGURATION, String.valueOf(e.getMessage()), e);
    }
  }

  /// The bytes of a file, without the end of the last line.
  private static byte[] read(Path file) {
    try {
      int owner = (Integer) Files.getAttribute(file, "unix:uid");
      Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(file);
      int self = LocalHost.uid();
      if (owner != self && owner != 0) {
        throw new JoinException(
            Reason.CONFIGURATION,
            "COMM_SECRET_FILE: %s belongs to user %d, who could change it (expected: to user %d, who runs this, or to root); give this user a copy, or as root: chown %3$s %1$s"
                .formatted(file, owner, self));
      }
      if (permissions.stream().anyMatch(OF_OTHERS::contains)) {
        throw new JoinException(
            Reason.CONFIGURATION,
            "COMM_SECRET_FILE: %s has mode %s (expected: only its owner may read it); chmod 600 %1$s"
                .formatted(file, PosixFilePermissions.toString(permissions)));
      }
      byte[] bytes = Files.readAllBytes(file);
      int length = bytes.length;
      while (length > 0 && (bytes[length - 1] == '\n' || bytes[length - 1] == '\r')) {
        length--;
      }
      if (length == 0) {
        throw new JoinException(
            Reason.CONFIGURATION,
            "COMM_SECRET_FILE: %s is empty (expected: a secret; %s)".formatted(file, MAKE_ONE));
      }
      byte[] secret = Arrays.copyOf(bytes, length);
      Arrays.fill(bytes, (byte) 0);
      return secret;
    } catch (UnsupportedOperationException e) {
      throw new JoinException(
          Reason.CONFIGURATION,
          "COMM_SECRET_FILE: %s is where files have no owner and mode (expected: only its owner may read it); give all ranks COMM_SECRET in its place"
              .formatted(file),
          e);
    } catch (IOException e) {
      throw new JoinException(
          Reason.CONFIGURATION,
          "COMM_SECRET_FILE: %s can't be read (expected: a secret; %s): %s"
              .formatted(file, MAKE_ONE, e),
          e);
    }
  }

  /// {@return a key for something else than joining, for HMAC-SHA256; empty where there is no
  /// secret}
  ///
  /// @param purpose for what; the keys of two purposes tell nothing of each other
  public Optional<SecretKey> keyFor(byte[] purpose) {
    return key == null
        ? Optional.empty()
        : Optional.of(derive(HKDFParameterSpec.ofExtract().addIKM(key), purpose));
  }

  private static SecretKey derive(HKDFParameterSpec.Builder extract, byte[] purpose) {
    try {
      return KDF.getInstance(KEYS).deriveKey(MAC, extract.thenExpand(purpose, PROOF_BYTES));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this JDK has no " + KEYS, e);
    }
  }

  /// {@return whether its secret is long enough where other hosts reach the session}
  public boolean isLong() {
    return secretBytes >= FEWEST_BYTES;
  }

  /// Whether the ends of a connection prove themselves.
  boolean isOn() {
    return key != null;
  }

  /// Whether [#check] lets a session be at an address.
  boolean permits(InetAddress address) {
    return refusal(address) == null;
  }

  /// Checks that a session may be at an address.
  ///
  /// @throws JoinException if hosts that know no secret could take part there (`ADDRESS`)
  void checkPermits(InetAddress address) {
    String refusal = refusal(address);
    if (refusal != null) {
      throw new JoinException(Reason.ADDRESS, refusal);
    }
  }

  /// The same before one is there, with a warning where anybody could take part.
  void check(InetAddress address) {
    checkPermits(address);
    if (key == null && !address.isLoopbackAddress()) {
      LOG.log(
          System.Logger.Level.WARNING,
          "{0}=true: whoever reaches {1} can join this session, read and change its data",
          INSECURE,
          address.getHostAddress());
    }
  }

  /// Why a session may not be at an address; null if it may.
  private @Nullable String refusal(InetAddress address) {
    if (address.isLoopbackAddress()) {
      return null;
    }
    String text = address.getHostAddress();
    if (address.isAnyLocalAddress()) {
      return "address %s means every interface (expected: the one that the other hosts reach)"
          .formatted(text);
    }
    if (key != null && !isLong()) {
      return "the secret has %d bytes, too few for address %s, which other hosts reach (expected: at least %d, random ones); %s"
          .formatted(secretBytes, text, FEWEST_BYTES, MAKE_ONE);
    }
    if (key == null && !insecure) {
      return "address %s is reached from other hosts, and there is no secret that ranks could prove they know; %s, or set %s=true where nobody else uses the network"
          .formatted(text, MAKE_ONE, INSECURE);
    }
    return null;
  }

  /// A nonce, or nothing where nothing is proved.
  byte[] nonce() {
    if (key == null) {
      return NOTHING;
    }
    byte[] nonce = new byte[NONCE_BYTES];
    RANDOM.nextBytes(nonce);
    return nonce;
  }

  /// The proof that this end knows the secret.
  ///
  /// @param hello of the host
  /// @param join of the rank; its own proof does not count
  byte[] proof(Role role, Frame.Hello hello, Frame.Join join) {
    if (key == null) {
      return NOTHING;
    }
    try {
      Mac mac = Mac.getInstance(MAC);
      mac.init(key);
      mac.update((byte) role.ordinal());
      mac.update(FrameCodec.encode(hello));
      mac.update(FrameCodec.encode(join.withProof(NOTHING)));
      return mac.doFinal();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every JDK has " + MAC, e);
    }
  }

  /// Whether a proof is right.
  boolean accepts(Role role, Frame.Hello hello, Frame.Join join, byte[] proof) {
    return MessageDigest.isEqual(proof, proof(role, hello, join));
  }
}
