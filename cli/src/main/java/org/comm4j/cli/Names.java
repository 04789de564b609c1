package org.comm4j.cli;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.core.schedule.CollectiveKind;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// Types, operators and operations by the names that people type. Case, `_` and `-` don't matter:
/// `allReduce`, `all-reduce` and `all_reduce` are one name.
final class Names {
  private static final Map<DataType, String> SHORT =
      Map.ofEntries(
          Map.entry(DataType.FLOAT64, "f64"),
          Map.entry(DataType.FLOAT32, "f32"),
          Map.entry(DataType.FLOAT16, "f16"),
          Map.entry(DataType.BFLOAT16, "bf16"),
          Map.entry(DataType.FLOAT8_E4M3, "f8e4m3"),
          Map.entry(DataType.FLOAT8_E5M2, "f8e5m2"),
          Map.entry(DataType.INT64, "i64"),
          Map.entry(DataType.INT32, "i32"),
          Map.entry(DataType.INT16, "i16"),
          Map.entry(DataType.INT8, "i8"),
          Map.entry(DataType.UINT64, "u64"),
          Map.entry(DataType.UINT32, "u32"),
          Map.entry(DataType.UINT16, "u16"),
          Map.entry(DataType.UINT8, "u8"),
          Map.entry(DataType.BOOL, "bool"),
          Map.entry(DataType.COMPLEX64, "c64"),
          Map.entry(DataType.COMPLEX128, "c128"));

  private Names() {}

  /// `f32`, `bf16`, `u8`; a pair has `-pair` behind its value's name.
  static String of(DataType type) {
    return type.kind() == DataType.Kind.PAIR
        ? of(type.valueType()) + "-pair"
        : SHORT.getOrDefault(type, type.name().toLowerCase(Locale.ROOT));
  }

  /// `sum`, `min-loc`.
  static String of(ReduceOp op) {
    return op.name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /// A name without what doesn't matter.
  static String plain(String name) {
    return name.toLowerCase(Locale.ROOT).replaceAll("[-_\\s]", "");
  }

  /// The value that has this name.
  ///
  /// @param names of a value, the one to show first
  static <T> T find(String text, List<T> values, Function<T, Stream<String>> names) {
    Optional<T> found =
        values.stream()
            .filter(value -> names.apply(value).anyMatch(name -> plain(name).equals(plain(text))))
            .findFirst();
    return found.orElseThrow(() ->
        new TypeConversionException(
            "'%s' (expected: %s); choose one of them"
                .formatted(
                    text,
                    values.stream()
                        .flatMap(value -> names.apply(value).limit(1))
                        .collect(Collectors.joining(", ")))));
  }

  /// For options that take an element type.
  static final class Type implements ITypeConverter<DataType> {
    @Override
    public DataType convert(String text) {
      return find(text, List.of(DataType.values()), type -> Stream.of(of(type), type.name()));
    }
  }

  /// For options that take an operator.
  static final class Op implements ITypeConverter<ReduceOp.Predefined> {
    @Override
    public ReduceOp.Predefined convert(String text) {
      return find(
          text,
          List.of(ReduceOp.Predefined.values()),
          op -> op == ReduceOp.Predefined.AVERAGE ? Stream.of(of(op), "avg") : Stream.of(of(op)));
    }
  }

  /// For options that take a collective.
  static final class Kind implements ITypeConverter<CollectiveKind> {
    @Override
    public CollectiveKind convert(String text) {
      return find(text, Arrays.asList(CollectiveKind.values()), kind -> Stream.of(kind.label()));
    }
  }
}
