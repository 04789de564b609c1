package org.comm4j.backend.aeron;

import java.net.InetAddress;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.OptionText;
import org.comm4j.core.session.PortRange;

/// The settings of this backend.
///
/// | variable | default | |
/// |---|---|---|
/// | `COMM_AERON_ADDRESS` | loopback on one host, else the one from which the meeting place is reached | the IP address of this host where a rank receives |
/// | `COMM_AERON_MTU` | what a packet of that interface holds | bytes of a datagram, a multiple of 32 |
/// | `COMM_AERON_TERM` | by the number of ranks | bytes of a term, a power of two: a pair of ranks that talks has three on each side, for each direction |
/// | `COMM_AERON_SHARED` | true | whether ranks of one host share memory: for all they do where others run elsewhere, else for regions |
/// | `COMM_AERON_PORTS` | any free one | from which range UDP ports are taken, as `40000-40099` |
/// | `COMM_AERON_DRIVER` | embedded | whose media driver a rank uses, see [DriverKind] |
/// | `COMM_AERON_DIRECTORY` | Aeron's own default, `aeron.dir` | the directory of an external driver |
/// | `COMM_AERON_IPC` | true | whether ranks that have one driver talk through memory |
/// | `COMM_AERON_INTEGRITY` | none | whether messages over UDP carry a proof of who sent what, see [Seal] |
///
/// @param address empty unless given
/// @param mtu 0 unless given
/// @param termBytes 0 unless given
/// @param sharesMemory whether ranks of one host do
/// @param directory of an external driver; empty unless given
/// @param ipc whether ranks with one driver talk through memory
/// @param isSealed whether messages over UDP carry a proof
record Options(
    String address,
    int mtu,
    int termBytes,
    PortRange ports,
    boolean sharesMemory,
    DriverKind driver,
    String directory,
    boolean ipc,
    boolean isSealed) {
  static final Set<String> NAMES =
      Set.of(
          "ADDRESS", "MTU", "TERM", "PORTS", "SHARED", "DRIVER", "DIRECTORY", "IPC", "INTEGRITY");

  private static final String PREFIX = "COMM_AERON_";
  static final int LEAST_MTU = 1024;
  static final int MOST_MTU = 65_504;
  static final int MTU_STEP = 32;
  static final int LEAST_TERM = 64 << 10;
  private static final int MOST_TERM = 1 << 30;
  private static final Pattern NUMBERS = Pattern.compile("[0-9.]+");

  /// Whose media driver a rank uses.
  enum DriverKind {
    /// Its own, which the rank itself moves along.
    EMBEDDED,
    /// One for all ranks of a host, in the process of the first of them, on a thread of its own.
    SHARED,
    /// One that runs already.
    EXTERNAL
  }

  /// What messages over UDP carry besides.
  private enum Integrity {
    MAC,
    NONE
  }

  /// @throws IllegalArgumentException if a value is not valid
  static Options of(CommConfig config) {
    DriverKind driver =
        option("DRIVER", config)
            .map(text -> text.word(DriverKind.class))
            .orElse(DriverKind.EMBEDDED);
    Optional<OptionText> directory = option("DIRECTORY", config);
    if (directory.isPresent() && driver != DriverKind.EXTERNAL) {
      throw directory
          .get()
          .refused("nothing, unless COMM_AERON_DRIVER is external; set it to that");
    }
    return new Options(
        option("ADDRESS", config).map(Options::address).orElse(""),
        option("MTU", config).map(text -> (int) text.size(LEAST_MTU, MOST_MTU, MTU_STEP)).orElse(0),
        option("TERM", config).map(Options::term).orElse(0),
        option("PORTS", config)
            .map(text -> PortRange.of(text.variable(), text.text()))
            .orElse(PortRange.ANY),
        option("SHARED", config).map(OptionText::flag).orElse(true),
        driver,
        directory.map(OptionText::text).orElse(""),
        option("IPC", config).map(OptionText::flag).orElse(true),
        option("INTEGRITY", config)
            .map(text -> text.word(Integrity.class) == Integrity.MAC)
            .orElse(false));
  }

  private static Optional<OptionText> option(String name, CommConfig config) {
    return OptionText.of(config, PREFIX + name);
  }

  /// Whether ranks of a host can have one driver, and then talk through memory.
  boolean sharesDriver() {
    return ipc && driver != DriverKind.EMBEDDED;
  }

  /// No host name has a colon, or digits and dots only.
  private static String address(OptionText option) {
    String text = option.text();
    if (text.contains(":") || NUMBERS.matcher(text).matches()) {
      try {
        InetAddress.ofLiteral(text);
      } catch (IllegalArgumentException e) {
        throw option.refused("an IP address of this host");
      }
    }
    return text;
  }

  private static int term(OptionText text) {
    long bytes = OptionText.bytes(text.text()).orElse(0);
    if (bytes < LEAST_TERM || bytes > MOST_TERM || Long.bitCount(bytes) != 1) {
      throw text.refused("a power of two from 64KiB to 1GiB");
    }
    return (int) bytes;
  }
}
