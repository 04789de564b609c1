package org.comm4j.core.session;

import java.io.IOException;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.comm4j.api.spi.HostIdentity;

/// Says where this process runs, from the kernel's mouth. Environment variables of launchers are
/// not asked: they count containers of one host as hosts, or hosts as one.
public final class LocalHost {
  private static final Path PROC = Path.of("/proc");
  private static final Path SHARED = Path.of("/dev/shm");

  private LocalHost() {}

  /// The boot, the namespaces for mounts, processes, IPC and networks, the user, and which folder
  /// is `/dev/shm`, which may be another one for who has another root: who has the same shares
  /// files there, memory and the loopback interface. Where the kernel does not tell (it is not
  /// Linux), the process itself: then nobody shares memory with it.
  ///
  /// @return whose id equals another one where it is the same host
  public static HostIdentity identity() {
    String name;
    try {
      name = Files.readString(PROC.resolve("sys/kernel/hostname")).strip();
    } catch (IOException e) {
      name = "localhost";
    }
    try {
      String boot = Files.readString(PROC.resolve("sys/kernel/random/boot_id")).strip();
      String id =
          String.join(
              "/",
              boot,
              namespace("mnt"),
              namespace("pid"),
              namespace("ipc"),
              namespace("net"),
              Integer.toString(uid()),
              sharedFolder());
      return new HostIdentity(name, id);
    } catch (IOException | UnsupportedOperationException e) {
      ProcessHandle self = ProcessHandle.current();
      return new HostIdentity(
          name, "process/" + self.pid() + "/" + self.info().startInstant().orElse(null));
    }
  }

  /// {@return the user id of this process}
  ///
  /// @throws IOException if the kernel does not tell
  /// @throws UnsupportedOperationException if files have no such owners here
  public static int uid() throws IOException {
    return uid(PROC.resolve("self"));
  }

  /// @param process this one, where the kernel has a file of it; elsewhere one that is made tells
  static int uid(Path process) throws IOException {
    if (Files.exists(process)) {
      return (Integer) Files.getAttribute(process, "unix:uid");
    }
    Path own = Files.createTempFile("comm4j", null);
    try {
      return (Integer) Files.getAttribute(own, "unix:uid");
    } finally {
      Files.delete(own);
    }
  }

  /// Whether this process is the administrator's; where the kernel does not tell, it is not.
  static boolean isRoot() {
    try {
      return uid() == 0;
    } catch (IOException | UnsupportedOperationException e) {
      return false;
    }
  }

  /// {@return whether an address is one of this host's}
  ///
  /// @param address any
  public static boolean has(InetAddress address) {
    boolean isOwn = address instanceof Inet4Address && address.isLoopbackAddress();
    try {
      return isOwn || NetworkInterface.getByInetAddress(address) != null;
    } catch (SocketException e) {
      return false;
    }
  }

  /// Empty where there is none.
  private static String sharedFolder() throws IOException {
    if (!Files.isDirectory(SHARED)) {
      return "";
    }
    Map<String, Object> found = Files.readAttributes(SHARED, "unix:dev,ino");
    return found.get("dev") + ":" + found.get("ino");
  }

  /// The number in `mnt:[4026531841]`.
  private static String namespace(String kind) throws IOException {
    String link = Files.readSymbolicLink(PROC.resolve("self/ns/" + kind)).toString();
    return link.replaceAll("[^0-9]", "");
  }
}
