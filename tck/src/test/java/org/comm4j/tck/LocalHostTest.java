package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.session.LocalHost;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// Processes that share memory say the same of where they are, and no others.
@Timeout(120)
@EnabledOnOs(OS.LINUX)
class LocalHostTest {
  @Test
  void identity_anotherProcess_isTheSame() throws Exception {
    assertThat(identities("\"$@\"")).containsExactly(LocalHost.identity().id());
  }

  /// As for a process in a `chroot`: it has the namespaces of those outside.
  @Test
  void identity_anotherSharedMemoryInTheSameNamespaces_isAnother() throws Exception {
    assumeTrue(
        ChildJvm.run(List.of("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"))
            .startsWith("0:"),
        "needs the right to mount another /dev/shm");
    String script =
        "\"$@\" && mount -t tmpfs tmpfs /dev/shm && \"$@\" && umount /dev/shm && \"$@\"";
    List<String> ids = identities(script);
    assertThat(ids).hasSize(3);
    assertThat(ids.get(1)).isNotEqualTo(ids.get(0));
    assertThat(ids.get(2)).isEqualTo(ids.get(0));
  }

  @Test
  void identity_noSharedMemory_isOneAllTheSame() throws Exception {
    assumeTrue(
        ChildJvm.run(List.of("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/dev"))
            .startsWith("0:"),
        "needs the right to mount another /dev");
    String script = "mount -t tmpfs tmpfs /dev && \"$@\" && \"$@\"";
    List<String> ids = identities(script);
    assertThat(ids).hasSize(2).allMatch(id -> id.startsWith(boot()));
    assertThat(ids.get(1)).isEqualTo(ids.get(0));
  }

  private static String boot() {
    String own = LocalHost.identity().id();
    return own.substring(0, own.indexOf('/') + 1);
  }

  /// @param script of a shell with mounts of its own, which runs its arguments
  private static List<String> identities(String script) throws Exception {
    List<String> command = new ArrayList<>(List.of("sh", "-c", script, "sh"));
    if (script.contains("mount")) {
      command.addAll(0, List.of("unshare", "-m"));
    }
    command.addAll(new ChildJvm().command(List.of(), Identity.class));
    String said = ChildJvm.run(command);
    assertThat(said).startsWith("0: ");
    return said.substring("0: ".length()).lines().toList();
  }

  /// A process that says where it is.
  static final class Identity {
    private Identity() {}

    public static void main(String[] args) {
      System.out.println(LocalHost.identity().id());
    }
  }
}
