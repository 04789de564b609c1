package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.comm4j.api.BackendInfo;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.Backends;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicators;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.spi.Availability;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@EnabledOnOs(value = OS.LINUX, architectures = "amd64")
class CudaProviderTest {
  private static final CommConfig CONFIG = CommConfig.builder().build();

  @TempDir Path root;

  @Test
  void provider_isFound_andNotBroken() {
    assertThat(Backends.availableBackends(CONFIG))
        .filteredOn(info -> info.name().equals("cuda"))
        .singleElement()
        .satisfies(info -> {
          assertThat(info.status()).isEqualTo(BackendInfo.Status.UNAVAILABLE);
          assertThat(info.reason()).isNotEmpty();
          assertThat(info.remedy()).isNotEmpty();
        });
  }

  @Test
  void communicator_notAvailable_saysWhy() {
    assertThatThrownBy(() -> Communicators.open(CONFIG.toBuilder().backend("cuda").build()))
        .isInstanceOf(BackendUnavailableException.class)
        .hasMessageStartingWith("backend 'cuda' is not available: ");
  }

  @Test
  void group_notAvailable_saysWhy() {
    assertThatThrownBy(() -> LocalGroup.open(2, CONFIG.toBuilder().backend("cuda").build()))
        .isInstanceOf(BackendUnavailableException.class)
        .hasMessageStartingWith("backend 'cuda' is not available: ");
  }

  @Test
  void availability_noLibrary_saysWhatToInstall() {
    assertUnavailable(new FakeHost(root), "no libcuda.so.1 found", "install NVIDIA's driver");
  }

  @ParameterizedTest
  @CsvSource({"470.199.02", "520.61"})
  void availability_oldDriver_namesTheVersion(String version) throws IOException {
    var host = new FakeHost(root).library("usr/lib64/libcuda.so.1").device("nvidia0");
    host.kernelModule(FakeHost.CLOSED, version);

    assertUnavailable(
        host, "driver is " + version + " (expected: 525 or newer)", "install a newer driver");
  }

  @Test
  void availability_noDevice_saysSo() throws IOException {
    var host = new FakeHost(root).library("usr/lib64/libcuda.so.1");
    host.kernelModule(FakeHost.CLOSED, "535.104.05");

    assertUnavailable(host, "no GPU", "nvidia-smi");
  }

  @Test
  void availability_everythingHere_isReady() throws IOException {
    var host = new FakeHost(root).library("usr/lib64/libcuda.so.1").device("nvidia0");

    assertThat(new CudaProvider(host.files()).availability(CONFIG))
        .isInstanceOf(Availability.Ready.class);
    host.kernelModule(FakeHost.OPEN, "570.1");
    assertThat(new CudaProvider(host.files()).availability(CONFIG))
        .isInstanceOf(Availability.Ready.class);
  }

  @ParameterizedTest
  @CsvSource({
    "DEVICE, x",
    "DEVICE, -1",
    "BLOCKS, 0",
    "BLOCKS, 513",
    "CHUNK, 4096",
    "CHUNK, 65537",
    "CHUNK, 2GiB",
    "CHUNK, 2147483648",
    "PATH, fast",
    "EXPRESSIONS, int32: x"
  })
  void options_wrong_nameValueAndExpectation(String option, String value) {
    String variable = "COMM_CUDA_" + option;
    CommConfig config = CONFIG.toBuilder().option(variable, value).build();

    assertThatThrownBy(() -> new CudaProvider().checkOptions(config))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll(variable, "'" + value + "'", "expected: ");
  }

  @Test
  void options_formsOfOtherBackends_areRead() {
    CudaOptions options =
        CudaOptions.of(
            CONFIG.toBuilder()
                .option("COMM_CUDA_CHUNK", "16MiB")
                .option("COMM_CUDA_PATH", "NAIVE")
                .build());

    assertThat(options.chunkBytes()).isEqualTo(16 << 20);
    assertThat(options.path()).isEqualTo(CudaOptions.Path.NAIVE);
    assertThat(CudaOptions.of(CONFIG).chunkBytes()).isEqualTo(16 << 20);
  }

  /// Before the rank joins, as its peers would wait for it.
  @Test
  void checkOptions_wrongTuningLine_isRefusedWhereCudaIsAskedFor() throws IOException {
    Path tuning = Files.writeString(root.resolve("tuning"), "cuda: allReduce fast\n");
    CommConfig config = CONFIG.toBuilder().tuning(tuning).build();
    CudaProvider provider = new CudaProvider();

    provider.checkOptions(config);
    assertThatThrownBy(() -> provider.checkOptions(config.toBuilder().backend("cuda").build()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll("line 1", "'fast' is no algorithm", "two-stage");
  }

  private static CommConfig withExpression(CommConfig config) {
    return config.toBuilder().option("COMM_CUDA_EXPRESSIONS", "float32: x + 1").build();
  }

  @Test
  void availability_expressionsWithoutNvrtc_sayWhatToInstall() throws IOException {
    var host = new FakeHost(root).library("usr/lib64/libcuda.so.1").device("nvidia0");
    var provider = new CudaProvider(host.files());

    assertUnavailable(
        provider.availability(withExpression(CONFIG)),
        "COMM_CUDA_EXPRESSIONS wants kernels compiled at run time, and no NVRTC is found",
        "COMM_CUDA_NVRTC");
    host.library("usr/local/cuda/lib64/libnvrtc.so.12");
    assertThat(provider.availability(withExpression(CONFIG)))
        .isInstanceOf(Availability.Ready.class);
    assertThat(provider.details(withExpression(CONFIG)))
        .containsEntry("nvrtc", root.resolve("usr/local/cuda/lib64/libnvrtc.so.12").toString());
    assertThat(provider.details(CONFIG)).doesNotContainKey("nvrtc");
  }

  @Test
  void availability_nvrtcIsNone_namesTheFile() throws IOException {
    var host = new FakeHost(root).library("usr/lib64/libcuda.so.1").device("nvidia0");
    String file = root.resolve("none.so").toString();
    CommConfig config = CONFIG.toBuilder().option("COMM_CUDA_NVRTC", file).build();
    var provider = new CudaProvider(host.files());

    assertUnavailable(
        provider.availability(withExpression(config)), "'" + file + "' is no library", "name its");
    assertThat(provider.availability(config)).isInstanceOf(Availability.Ready.class);
  }

  @Test
  void details_areWhatIsThere() throws IOException {
    var host = new FakeHost(root);
    assertThat(new CudaProvider(host.files()).details(CONFIG)).isEmpty();

    host.library("usr/lib64/libcuda.so.1").device("nvidia0").device("nvidia1");
    host.kernelModule(FakeHost.CLOSED, "535.104.05");
    assertThat(new CudaProvider(host.files()).details(CONFIG))
        .containsExactly(
            Map.entry("driver", "535.104.05"),
            Map.entry("file", root.resolve("usr/lib64/libcuda.so.1").toString()),
            Map.entry("devices", root.resolve("dev/nvidia0") + " " + root.resolve("dev/nvidia1")));
  }

  private static void assertUnavailable(FakeHost host, String reason, String remedy) {
    assertUnavailable(new CudaProvider(host.files()).availability(CONFIG), reason, remedy);
  }

  private static void assertUnavailable(Availability found, String reason, String remedy) {
    assertThat(found)
        .isInstanceOfSatisfying(
            Availability.Unavailable.class,
            it -> {
              assertThat(it.reason()).contains(reason);
              assertThat(it.remedy()).contains(remedy);
            });
  }
}
