package org.comm4j.backend.cuda;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/// A folder that looks like the root of a host with some of NVIDIA's driver.
record FakeHost(Path root) {
  /// What the driver's part in the kernel says of itself.
  static final String CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s  Tue Jan 1\n";

  /// The same of the one whose source is open.
  static final String OPEN =
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build\n";

  /// A library of 64 bits for x86, as far as its header tells.
  FakeHost library(String file) throws IOException {
    byte[] header = new byte[64];
    header[0] = 0x7f;
    header[1] = 'E';
    header[4] = 2;
    header[18] = 62;
    return bytes(file, header);
  }

  /// The same of 32 bits.
  FakeHost smallLibrary(String file) throws IOException {
    byte[] header = new byte[64];
    header[0] = 0x7f;
    header[1] = 'E';
    header[4] = 1;
    header[18] = 3;
    return bytes(file, header);
  }

  /// The dynamic loader's cache, with entries for these files.
  FakeHost cache(String... files) throws IOException {
    String entries = String.join("\0libcuda.so.1\0", files) + "\0";
    return text("etc/ld.so.cache", "glibc-ld.so.cache1.1\0\3\7libcuda.so.1\0" + entries);
  }

  FakeHost kernelModule(String form, String version) throws IOException {
    return text("proc/driver/nvidia/version", form.formatted(version));
  }

  FakeHost device(String name) throws IOException {
    return text("dev/" + name, "");
  }

  private FakeHost text(String file, String content) throws IOException {
    return bytes(file, content.getBytes(StandardCharsets.ISO_8859_1));
  }

  private FakeHost bytes(String file, byte[] content) throws IOException {
    Path path = root.resolve(file);
    Files.createDirectories(path.getParent());
    Files.write(path, content);
    return this;
  }

  DriverFiles files() {
    return new DriverFiles("", root);
  }
}
