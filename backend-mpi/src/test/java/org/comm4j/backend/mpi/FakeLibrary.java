package org.comm4j.backend.mpi;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Writes shared libraries that have names and no code: enough to be told from their file.
///
/// Five sections: none, the names, the symbols, the data behind some of them, the dynamic section.
final class FakeLibrary {
  private static final int HEADER_BYTES = 64;
  private static final int MACHINE_OFFSET = 18;
  private static final long DATA_ADDRESS = 0x10000;
  private static final int DATA_SECTION = 3;

  private final ByteBuffer names = little(1 << 16).put((byte) 0);
  private final ByteBuffer symbols = little(1 << 16).put(new byte[24]);
  private final ByteBuffer data = little(1 << 12).putLong(0);
  private final ByteBuffer dynamic = little(32);

  static FakeLibrary openMpi(String version) {
    return new FakeLibrary()
        .soname("libmpi.so.40")
        .exports("MPI_Init", "MPI_Iallreduce", "MPI_Win_allocate_shared", "ompi_mpi_comm_world")
        .text("ompi_version_string", version);
  }

  static FakeLibrary mpich(String version) {
    return new FakeLibrary()
        .soname("libmpi.so.12")
        .exports("MPI_Init", "MPI_Iallreduce", "MPI_Win_allocate_shared", "MPIR_Dup_fn")
        .exports(MpiLibrary.Feature.LARGE_COUNTS.functions().toArray(String[]::new))
        .exports("MPI_Allreduce_init")
        .text("MPII_Version_string", version);
  }

  /// A library with the standard's interface, of MPICH's makers.
  static FakeLibrary standard(String version) {
    return mpich(version).soname("libmpi_abi.so.1").exports("MPI_Abi_get_version");
  }

  private static ByteBuffer little(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.nativeOrder());
  }

  FakeLibrary soname(String name) {
    dynamic.clear().putLong(14).putLong(name(name)).putLong(0).putLong(0);
    return this;
  }

  FakeLibrary exports(String... functions) {
    for (String function : functions) {
      symbol(function, 1, 1, 0);
    }
    return this;
  }

  /// Takes it from another library.
  FakeLibrary imports(String function) {
    return symbol(function, 1, 0, 0);
  }

  /// Has a function of this name that others can't see.
  FakeLibrary hides(String function) {
    return symbol(function, 0, 1, 0);
  }

  /// Exports an array of characters.
  FakeLibrary text(String variable, String text) {
    symbol(variable, 1, DATA_SECTION, DATA_ADDRESS + data.position());
    data.put(text.getBytes(StandardCharsets.UTF_8)).put((byte) 0);
    return this;
  }

  private FakeLibrary symbol(String name, int binding, int section, long address) {
    symbols.putInt(name(name)).put((byte) (binding << 4)).put((byte) 0).putShort((short) section);
    symbols.putLong(address).putLong(0);
    return this;
  }

  private int name(String name) {
    int at = names.position();
    names.put(name.getBytes(StandardCharsets.UTF_8)).put((byte) 0);
    return at;
  }

  byte[] bytes() {
    List<ByteBuffer> contents = List.of(names, symbols, data, dynamic);
    int[] types = {3, 11, 1, 6};
    List<long[]> sections = new ArrayList<>(List.of(new long[4]));
    var all = little(1 << 18);
    all.position(HEADER_BYTES);
    for (int i = 0; i < contents.size(); i++) {
      byte[] content = new byte[contents.get(i).position()];
      contents.get(i).get(0, content);
      long address = i + 1 == DATA_SECTION ? DATA_ADDRESS : 0;
      sections.add(new long[] {types[i], address, all.position(), content.length});
      all.put(content);
    }
    int table = all.position();
    for (long[] section : sections) {
      all.putInt(0).putInt((int) section[0]).putLong(0).putLong(section[1]).putLong(section[2]);
      all.putLong(section[3]).putInt(1).putInt(0).putLong(1).putLong(0);
    }
    header(all, table, sections.size());
    byte[] bytes = new byte[all.position()];
    all.get(0, bytes);
    return bytes;
  }

  private static void header(ByteBuffer all, int table, int sections) {
    all.put(0, (byte) 0x7f).put(1, (byte) 'E').put(2, (byte) 'L').put(3, (byte) 'F');
    all.put(4, (byte) 2);
    all.put(5, (byte) (ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN ? 1 : 2));
    all.putShort(16, (short) 3).putShort(MACHINE_OFFSET, machine()).putInt(20, 1);
    all.putLong(40, table).putShort(52, (short) HEADER_BYTES).putShort(58, (short) 64);
    all.putShort(60, (short) sections);
  }

  private static short machine() {
    return switch (System.getProperty("os.arch")) {
      case "amd64" -> 62;
      case "aarch64" -> 183;
      case "riscv64" -> 243;
      case "ppc64le", "ppc64" -> 21;
      case "s390x" -> 22;
      default -> 0;
    };
  }

  Path write(Path file) throws IOException {
    Files.createDirectories(file.getParent());
    return Files.write(file, bytes());
  }
}
