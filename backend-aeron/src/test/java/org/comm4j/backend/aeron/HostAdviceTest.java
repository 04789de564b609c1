package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.comm4j.api.Advice;
import org.comm4j.api.CommConfig;
import org.comm4j.core.session.OwnFolder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HostAdviceTest {
  private static final Path MEMORY = Path.of("/dev/shm");

  @TempDir Path folder;

  private Path system(int receive, int send) throws IOException {
    Files.writeString(folder.resolve("rmem_max"), receive + "\n");
    Files.writeString(folder.resolve("wmem_max"), send + "\n");
    return folder;
  }

  private static CommConfig ranks(int ranks) {
    return CommConfig.builder().worldSize(ranks).rank(0).build();
  }

  @Test
  void of_hostThatHasAll_isNothing() throws Exception {
    assumeThat(MEMORY).isDirectory();
    var host = new HostAdvice(system(4 << 20, 4 << 20), MEMORY, Map.of("eth0", 1500));
    assertThat(host.of(ranks(2))).isEmpty();
  }

  @Test
  void of_smallSocketBuffers_saysWhatRanksUseAndHowToGiveIt() throws Exception {
    assumeThat(MEMORY).isDirectory();
    var host = new HostAdvice(system(4 << 20, 212_992), MEMORY, Map.of());
    assertThat(host.of(ranks(2)))
        .containsExactly(
            new Advice(
                "socket buffers",
                "at most 212992 bytes",
                "2 ranks use up to 786432 bytes for a socket; large messages, and many senders to one rank, are faster then; as root: sysctl -w net.core.rmem_max=786432 net.core.wmem_max=786432."));
    assertThat(host.of(ranks(1))).as("which receives nothing").isEmpty();
  }

  @Test
  void of_littleSpace_saysWhatRanksTake() throws Exception {
    assumeThat(MEMORY).isDirectory();
    int ranks = 100_000; // whatever is free now
    var host = new HostAdvice(system(4 << 20, 4 << 20), MEMORY, Map.of());
    List<Advice> advice = host.of(ranks(ranks));
    assertThat(advice).extracting(Advice::subject).containsExactly("space in /dev/shm");
    assertThat(advice.getFirst().found()).endsWith(" MiB free");
    assertThat(advice.getFirst().remedy())
        .contains("%d ranks here take up to ".formatted(ranks), "--shm-size");
  }

  @Test
  void of_filesOnADisk_saysWhereTheyBelong() throws Exception {
    assumeThat(Files.getFileStore(folder).type()).isNotIn("tmpfs", "ramfs");
    var host = new HostAdvice(system(4 << 20, 4 << 20), folder, Map.of());
    assertThat(host.of(ranks(2)))
        .anyMatch(
            each -> each.subject().equals("driver's files") && each.remedy().contains("/dev/shm"));
  }

  @Test
  void of_smallPackets_saysHowToMakeThemLarger() throws Exception {
    assumeThat(MEMORY).isDirectory();
    var host = new HostAdvice(system(4 << 20, 4 << 20), MEMORY, Map.of("eth0", 1500, "tun0", 1000));
    List<Advice> advice = host.of(ranks(2));
    assertThat(advice).extracting(Advice::subject).containsExactly("packets of tun0");
    assertThat(advice.getFirst().remedy()).contains("ip link set dev tun0 mtu 1500");
  }

  /// It is said where a communicator is opened.
  @Test
  void advice_datagramTooLongForTheTerms_isNone() {
    CommConfig config =
        CommConfig.builder()
            .option("COMM_AERON_MTU", "65504")
            .option("COMM_AERON_TERM", "64KiB")
            .build();
    assertThat(new AeronProvider().advice(config)).isEmpty();
  }

  @Test
  void details_always_sayHowMuchSpaceIsFreeAndWhere() {
    assertThat(new AeronProvider().details(CommConfig.builder().build()).get("free space"))
        .matches("\\d+ MiB in %s \\(\\w+\\)".formatted(OwnFolder.root()));
    CommConfig config = ExternalDriver.config(CommConfig.builder().build(), folder.resolve("none"));
    assertThat(new AeronProvider().details(config))
        .hasEntrySatisfying(
            "free space", text -> assertThat(text).startsWith("unknown: ").contains("none"));
  }

  @Test
  void availability_externalDriverIsNotThere_saysWhy() {
    CommConfig config = ExternalDriver.config(CommConfig.builder().build(), folder.resolve("none"));
    assertThat(new AeronProvider().availability(config).toString())
        .contains("Unavailable", folder.resolve("none") + " is not a directory");
  }
}
