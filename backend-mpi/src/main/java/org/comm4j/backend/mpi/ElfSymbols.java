package org.comm4j.backend.mpi;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// What a shared library gives and takes, read from its file: nothing of it runs. For one thread.
///
/// Reads ELF files of 64 bits by their section headers, which linkers leave in shared libraries. Of
/// a library of 40 MB it reads some 50 KB. A file that lies about its lengths costs an exception,
/// not memory.
///
/// Tool Interface Standard: Executable and Linking Format, 1.2 (1995); System V ABI, chapter 4.
final class ElfSymbols implements Closeable {
  /// It can't be loaded by a process such as this one; [#why] comes after `it`.
  static final class FormatException extends IOException {
    private static final long serialVersionUID = 1L;

    private final String why;

    FormatException(String why) {
      super(why);
      this.why = why;
    }

    String why() {
      return why;
    }
  }

  /// By Java's name of the processor.
  private static final Map<String, Integer> MACHINES =
      Map.of("amd64", 62, "aarch64", 183, "riscv64", 243, "ppc64le", 21, "ppc64", 21, "s390x", 22);

  private static final int MAGIC = 0x7f454c46;
  private static final int CLASS_64_BITS = 2;
  private static final int BIG_ENDIAN = 2;
  private static final int SHARED_OBJECT = 3;

  private static final int HEADER_BYTES = 64;
  private static final int SECTION_BYTES = 64;
  private static final int SYMBOL_BYTES = 24;
  private static final int DYNAMIC_BYTES = 16;

  private static final int DYNAMIC_SECTION = 6;
  private static final int WITHOUT_BYTES_SECTION = 8;
  private static final int SYMBOLS_SECTION = 11;
  private static final int SONAME_TAG = 14;

  /// The largest libraries have some MB of names.
  private static final long MOST_TABLE_BYTES = 64 << 20;

  private static final int MOST_TEXT_BYTES = 256;

  private record Section(int type, long address, long offset, long bytes, int link) {}

  private record Symbol(int section, long address) {}

  private final FileChannel channel;
  private final ByteOrder order;
  private final List<Section> sections = new ArrayList<>();
  private final Map<String, Symbol> exported = new HashMap<>();
  private final Set<String> imported = new HashSet<>();
  private @Nullable String soname;

  /// Opens a library and reads its names.
  ///
  /// @throws FormatException if it is none that this process could load
  /// @throws IOException if it can't be read
  static ElfSymbols of(Path file) throws IOException {
    if (!Files.isRegularFile(file)) { // opening a pipe would wait for its other end
      throw new FormatException("is " + (Files.exists(file) ? "no file" : "not there"));
    }
    FileChannel channel = FileChannel.open(file, StandardOpenOption.READ);
    try {
      return new ElfSymbols(channel);
    } catch (IOException | RuntimeException e) {
      channel.close();
      throw e;
    }
  }

  private ElfSymbols(FileChannel channel) throws IOException {
    this.channel = channel;
    if (channel.size() < HEADER_BYTES) {
      throw new FormatException("is no shared library: it has %d bytes".formatted(channel.size()));
    }
    ByteBuffer header = read("header", 0, HEADER_BYTES, ByteOrder.BIG_ENDIAN);
    if (header.getInt(0) != MAGIC) {
      throw new FormatException("is no shared library: it does not begin as ELF files do");
    }
    order = header.get(5) == BIG_ENDIAN ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN;
    header.order(order);
    checkLoads(header);
    readSections(header);
    for (Section section : sections) {
      switch (section.type()) {
        case SYMBOLS_SECTION -> readSymbols(section);
        case DYNAMIC_SECTION -> readSoname(section);
        default -> {
          // code, data, and what debuggers read
        }
      }
    }
  }

  private void checkLoads(ByteBuffer header) throws FormatException {
    if (header.get(4) != CLASS_64_BITS) {
      throw new FormatException("is a library of 32 bits, this process has 64");
    }
    String arch = System.getProperty("os.arch");
    int machine = Short.toUnsignedInt(header.getShort(18));
    if (order != ByteOrder.nativeOrder() || machine != MACHINES.getOrDefault(arch, machine)) {
      throw new FormatException(
          "is a library for other processors (ELF machine %d), this one is %s"
              .formatted(machine, arch));
    }
    int type = Short.toUnsignedInt(header.getShort(16));
    if (type != SHARED_OBJECT) {
      throw new FormatException(
          "is no shared library: its ELF type is %d (expected: %d)".formatted(type, SHARED_OBJECT));
    }
  }

  private void readSections(ByteBuffer header) throws IOException {
    int count = Short.toUnsignedInt(header.getShort(60));
    int bytes = Short.toUnsignedInt(header.getShort(58));
    if (count == 0 || bytes != SECTION_BYTES) {
      throw new FormatException("has no section headers, which tell its symbols");
    }
    ByteBuffer table =
        read("section headers", header.getLong(40), (long) count * SECTION_BYTES, order);
    for (int at = 0; at < table.limit(); at += SECTION_BYTES) {
      sections.add(
          new Section(
              table.getInt(at + 4),
              table.getLong(at + 16),
              table.getLong(at + 24),
              table.getLong(at + 32),
              table.getInt(at + 40)));
    }
  }

  private void readSymbols(Section section) throws IOException {
    byte[] names = names(section);
    ByteBuffer table = read("symbols", section.offset(), section.bytes(), order);
    for (int at = 0; at + SYMBOL_BYTES <= table.limit(); at += SYMBOL_BYTES) {
      String name = text(names, table.getInt(at));
      int home = Short.toUnsignedInt(table.getShort(at + 6));
      if (home == 0) {
        imported.add(name);
      } else if (isVisible(table.get(at + 4), table.get(at + 5))) {
        exported.put(name, new Symbol(home, table.getLong(at + 8)));
      }
    }
  }

  /// Neither local to the library nor hidden in it.
  private static boolean isVisible(int info, int other) {
    int visibility = other & 3;
    return info >>> 4 != 0 && (visibility == 0 || visibility == 3);
  }

  private void readSoname(Section section) throws IOException {
    ByteBuffer table = read("dynamic section", section.offset(), section.bytes(), order);
    for (int at = 0; at + DYNAMIC_BYTES <= table.limit(); at += DYNAMIC_BYTES) {
      if (table.getLong(at) == SONAME_TAG) {
        soname = text(names(section), table.getLong(at + 8));
      }
    }
  }

  private byte[] names(Section of) throws IOException {
    if (of.link() < 0 || of.link() >= sections.size()) {
      throw new FormatException(
          "is damaged: section %d is named, it has %d".formatted(of.link(), sections.size()));
    }
    Section names = sections.get(of.link());
    return read("names", names.offset(), names.bytes(), order).array();
  }

  private ByteBuffer read(String what, long offset, long bytes, ByteOrder order)
      throws IOException {
    if (bytes < 0 || bytes > MOST_TABLE_BYTES) {
      throw new FormatException(
          "is damaged: its %s have %s bytes".formatted(what, Long.toUnsignedString(bytes)));
    }
    if (offset < 0 || offset > channel.size() - bytes) {
      throw new FormatException(
          "is truncated: it ends at byte %d, its %s at byte %s"
              .formatted(channel.size(), what, Long.toUnsignedString(offset + bytes)));
    }
    ByteBuffer buffer = ByteBuffer.allocate((int) bytes).order(order);
    while (buffer.hasRemaining()) {
      if (channel.read(buffer, offset + buffer.position()) < 0) {
        throw new FormatException("is truncated: it became shorter while it was read");
      }
    }
    return buffer.flip();
  }

  /// The text that ends with the next zero.
  private static String text(byte[] names, long start) throws FormatException {
    if (start < 0 || start >= names.length) {
      throw new FormatException(
          "is damaged: a name is at byte %d of %d".formatted(start, names.length));
    }
    int end = (int) start;
    while (end < names.length && names[end] != 0) {
      end++;
    }
    return new String(names, (int) start, end - (int) start, StandardCharsets.ISO_8859_1);
  }

  /// {@return the name under which others link to it, for example `libmpi.so.40`; empty if it has
  /// none}
  Optional<String> soname() {
    return Optional.ofNullable(soname);
  }

  /// {@return whether it gives this function or variable to others}
  boolean exports(String symbol) {
    return exported.containsKey(symbol);
  }

  /// {@return whether it gives or takes a function or variable whose name begins so}
  boolean hasPrefix(String prefix) {
    return anyBegins(exported.keySet(), prefix) || anyBegins(imported, prefix);
  }

  private static boolean anyBegins(Set<String> names, String prefix) {
    for (String name : names) {
      if (name.startsWith(prefix)) {
        return true;
      }
    }
    return false;
  }

  /// {@return the text in an exported array of characters, at most 255 of them; empty if there is
  /// no such array}
  ///
  /// @throws IOException if the file can't be read
  Optional<String> text(String symbol) throws IOException {
    Symbol found = exported.get(symbol);
    if (found == null || found.section() >= sections.size()) {
      return Optional.empty();
    }
    Section home = sections.get(found.section());
    long start = found.address() - home.address();
    if (home.type() == WITHOUT_BYTES_SECTION || start < 0 || start >= home.bytes()) {
      return Optional.empty();
    }
    long bytes = Math.min(MOST_TEXT_BYTES, home.bytes() - start);
    return Optional.of(text(read("data", home.offset() + start, bytes, order).array(), 0));
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
