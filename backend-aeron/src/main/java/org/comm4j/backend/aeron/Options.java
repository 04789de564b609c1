package org.comm4j.backend.aeron;

import java.net.InetAddress;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.comm4j.api.CommConfig;
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
  private static final Pattern SIZE = Pattern.compile("(\\d{1,10})\\s*(B|KIB|MIB|GIB)?");
  private static final Map<String, Integer> SHIFTS =
      Map.of("B", 0, "KIB", 10, "MIB", 20, "GIB", 30);

  /// Whose media driver a rank uses.
  enum DriverKind {
    /// Its own, which the rank itself moves along.
    EMBEDDED,
    /// One for all ranks of a host, in the process of the first of them, on a thread of its own.
    SHARED,
    /// One that runs already.
    EXTERNAL
  }

  /// @throws IllegalArgumentException if a value is not valid
  static Options of(CommConfig config) {
    String mtu = config.options().get(PREFIX + "MTU");
    String term = config.options().get(PREFIX + "TERM");
    String ports = config.options().get(PREFIX + "PORTS");
    DriverKind driver = driver(config.options().getOrDefault(PREFIX + "DRIVER", "embedded"));
    String directory = config.options().getOrDefault(PREFIX + "DIRECTORY", "");
    if (!directory.isEmpty() && driver != DriverKind.EXTERNAL) {
      throw refused(
          "DIRECTORY", directory, "nothing, unless COMM_AERON_DRIVER is external; set it to that");
    }
    return new Options(
        address(config.options().getOrDefault(PREFIX + "ADDRESS", "")),
        mtu == null ? 0 : mtu(mtu),
        term == null ? 0 : term(term),
        ports == null ? PortRange.ANY : PortRange.of(PREFIX + "PORTS", ports),
        isTrue("SHARED", config),
        driver,
        directory,
        isTrue("IPC", config),
        isSealed(config.options().getOrDefault(PREFIX + "INTEGRITY", "none")));
  }

  /// Whether ranks of a host can have one driver, and then talk through memory.
  boolean sharesDriver() {
    return ipc && driver != DriverKind.EMBEDDED;
  }

  /// No host name has a colon, or digits and dots only.
  private static String address(String text) {
    if (text.contains(":") || NUMBERS.matcher(text).matches()) {
      try {
        InetAddress.ofLiteral(text);
      } catch (IllegalArgumentException e) {
        throw refused("ADDRESS", text, "an IP address of this host");
      }
    }
    return text;
  }

  private static boolean isTrue(String name, CommConfig config) {
    String text = config.options().getOrDefault(PREFIX + name, "true");
    return switch (text) {
      case "true" -> true;
      case "false" -> false;
      default -> throw refused(name, text, "true or false");
    };
  }

  private static boolean isSealed(String text) {
    return switch (text) {
      case "mac" -> true;
      case "none" -> false;
      default -> throw refused("INTEGRITY", text, "mac or none");
    };
  }

  private static DriverKind driver(String text) {
    return switch (text) {
      case "embedded" -> DriverKind.EMBEDDED;
      case "shared" -> DriverKind.SHARED;
      case "external" -> DriverKind.EXTERNAL;
      default -> throw refused("DRIVER", text, "embedded, shared or external");
    };
  }

  private static int mtu(String text) {
    long bytes = size(text);
    if (bytes < LEAST_MTU || bytes > MOST_MTU || bytes % MTU_STEP != 0) {
      throw refused("MTU", text, "a multiple of 32 from 1024 to 65504");
    }
    return (int) bytes;
  }

  private static int term(String text) {
    long bytes = size(text);
    if (bytes < LEAST_TERM || bytes > MOST_TERM || Long.bitCount(bytes) != 1) {
      throw refused("TERM", text, "a power of two from 64KiB to 1GiB");
    }
    return (int) bytes;
  }

  /// @return -1 if it is none
  private static long size(String text) {
    Matcher matcher = SIZE.matcher(text.strip().toUpperCase(Locale.ROOT));
    if (!matcher.matches()) {
      return -1;
    }
    String unit = matcher.group(2) == null ? "B" : matcher.group(2);
    return Long.parseLong(matcher.group(1)) << SHIFTS.getOrDefault(unit, 0);
  }

  private static IllegalArgumentException refused(String name, String text, String expected) {
    return new IllegalArgumentException(
        "%s%s: '%s' (expected: %s)".formatted(PREFIX, name, text, expected));
  }
}
