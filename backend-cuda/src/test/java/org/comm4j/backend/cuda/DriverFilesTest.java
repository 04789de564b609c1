package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DriverFilesTest {
  @TempDir Path root;

  @Test
  void library_emptyHost_isNone() {
    assertThat(new FakeHost(root).files().library()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({"usr/lib64/libcuda.so.1", "usr/lib/x86_64-linux-gnu/libcuda.so.1"})
  void library_usualFolder_isFound(String file) throws IOException {
    assertThat(new FakeHost(root).library(file).files().library()).contains(root.resolve(file));
  }

  @Test
  void library_loadersCache_goesBeforeUsualFolders() throws IOException {
    var host =
        new FakeHost(root)
            .library("usr/lib64/libcuda.so.1")
            .library("usr/lib/wsl/lib/libcuda.so.1")
            .cache("/gone/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1");

    assertThat(host.files().library()).contains(root.resolve("usr/lib/wsl/lib/libcuda.so.1"));
  }

  @Test
  void library_pathOfEnvironment_goesFirst() throws IOException {
    new FakeHost(root).library("usr/lib64/libcuda.so.1").library("mine/libcuda.so.1");
    var files = new DriverFiles(root.resolve("none") + ":" + root.resolve("mine"), root);

    assertThat(files.library()).contains(root.resolve("mine/libcuda.so.1"));
  }

  @Test
  void library_of32Bits_isPassedOver() throws IOException {
    var host =
        new FakeHost(root)
            .smallLibrary("usr/lib/i386-linux-gnu/libcuda.so.1")
            .library("usr/lib64/libcuda.so.1")
            .cache("/usr/lib/i386-linux-gnu/libcuda.so.1");

    assertThat(host.files().library()).contains(root.resolve("usr/lib64/libcuda.so.1"));
  }

  @Test
  void version_ofEitherKernelModule_isRead() throws IOException {
    var host = new FakeHost(root);
    assertThat(host.files().version()).isEmpty();

    host.kernelModule(FakeHost.CLOSED, "535.104.05");
    assertThat(host.files().version()).contains("535.104.05");
    host.kernelModule(FakeHost.OPEN, "560.35");
    assertThat(host.files().version()).contains("560.35");
    host.kernelModule("something else %s", "5.6");
    assertThat(host.files().version()).isEmpty();
  }

  @Test
  void devices_areGpusAlone() throws IOException {
    var host = new FakeHost(root);
    assertThat(host.files().devices()).isEmpty();

    host.device("nvidiactl").device("nvidia1").device("nvidia0").device("nvidia-uvm").device("dxg");
    assertThat(host.files().devices())
        .extracting(device -> root.resolve("dev").relativize(device).toString())
        .containsExactly("nvidia0", "nvidia1", "dxg");
  }
}
