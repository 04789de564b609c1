package org.comm4j.backend.cuda;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.Collective;
import org.comm4j.api.DataType;
import org.comm4j.api.Epilogue;

/// A program's own end of epilogues, as `COMM_CUDA_EXPRESSIONS` declares it: for one type of input
/// and one of output, with kernels that are compiled at run time and loaded when a rank opens.
///
/// The text stands in a function of its own, in parentheses. It can't end that function or the
/// line, so what is wrong in it is an error of its own and never a program of another form.
///
/// @param from the type of what is reduced
/// @param to the type of the output
/// @param text in `x`, of the type of an epilogue's steps, and `i`, a 64-bit integer
record Expression(DataType from, DataType to, String text) {
  static final String VARIABLE = "COMM_CUDA_EXPRESSIONS";

  private static final String ARROW = "->";
  private static final Pattern SIGNS = Pattern.compile("[\\w .,+\\-*/%<>=!?:&|^~()]+");
  private static final Pattern COMMENT = Pattern.compile("//|/[*]");
  private static final String EXPECTED_SIGNS =
      "one expression of CUDA C++ in x and i: letters, digits and . , + - * / % < > = ! ? : & | ^ ~, closed parentheses, no comment";

  /// {@return what a list has, each once, in its order}
  ///
  /// @param list `TYPE: EXPRESSION` and `TYPE -> TYPE: EXPRESSION`, with `;` between them; may be
  ///   blank
  /// @throws IllegalArgumentException if one is wrong
  static List<Expression> all(String list) {
    return list.isBlank()
        ? List.of()
        : Arrays.stream(list.split(";", -1)).map(Expression::of).distinct().toList();
  }

  private static Expression of(String declared) {
    int colon = declared.indexOf(':');
    if (colon < 0) {
      throw refused(
          declared, "TYPE: EXPRESSION or TYPE -> TYPE: EXPRESSION, such as float32: x > 0 ? x : 0");
    }
    List<DataType> types =
        Arrays.stream(declared.substring(0, colon).split(ARROW, -1))
            .map(type -> type(declared, type.strip()))
            .toList();
    if (types.size() > 2) {
      throw refused(declared, "one type, or two as TYPE -> TYPE");
    }
    String text = declared.substring(colon + 1).strip();
    if (!SIGNS.matcher(text).matches() || COMMENT.matcher(text).find() || !isClosed(text)) {
      throw refused(declared, EXPECTED_SIGNS);
    }
    return new Expression(types.getFirst(), types.getLast(), text);
  }

  private static DataType type(String declared, String name) {
    List<DataType> floats =
        Stream.of(DataType.values()).filter(each -> each.kind() == DataType.Kind.FLOAT).toList();
    return floats.stream()
        .filter(each -> lower(each).equals(name))
        .findFirst()
        .orElseThrow(() ->
            refused(
                declared,
                "for '%s' one of %s"
                    .formatted(
                        name,
                        floats.stream().map(Expression::lower).collect(Collectors.joining(", ")))));
  }

  private static boolean isClosed(String text) {
    int open = 0;
    for (int i = 0; i < text.length() && open >= 0; i++) {
      open += text.charAt(i) == '(' ? 1 : text.charAt(i) == ')' ? -1 : 0;
    }
    return open == 0;
  }

  private static IllegalArgumentException refused(String declared, String expected) {
    return new IllegalArgumentException(
        "%s: '%s' (expected: %s)".formatted(VARIABLE, declared.strip(), expected));
  }

  /// {@return which of some declared ones a call has at its epilogue's end} Empty if it has none
  /// there, or one that was not declared.
  static Optional<Expression> of(Collective call, List<Expression> declared) {
    return call instanceof Collective.WithEpilogue it && isExpressed(it)
        ? declared.stream().filter(each -> each.isOf(it)).findFirst()
        : Optional.empty();
  }

  /// {@return whether a call has one, declared or not}
  static boolean isExpressed(Collective.WithEpilogue call) {
    Epilogue epilogue = call.epilogue();
    return epilogue != null && epilogue.expression() != null;
  }

  private boolean isOf(Collective.WithEpilogue call) {
    Epilogue epilogue = call.epilogue();
    return epilogue != null
        && text.equals(epilogue.expression())
        && call.input().type() == from
        && call.output().type() == to;
  }

  // --- kernels ---

  /// Reduces in one stage or two: a sum, or by its divisor an average.
  KernelName reduce() {
    return kernel("reduce");
  }

  /// The same of little data.
  KernelName lowLatency() {
    return kernel("low_latency");
  }

  /// Does the epilogue to results that are there.
  KernelName finish() {
    return kernel("finish");
  }

  private KernelName kernel(String does) {
    return new KernelName(toString(), does + "_expression");
  }

  /// {@return its kernels, all of one module}
  Set<KernelName> kernels() {
    return Set.of(reduce(), lowLatency(), finish());
  }

  /// {@return the source of its kernels, which includes `kernels.cuh`}
  String source() {
    String wide = from == DataType.FLOAT64 || to == DataType.FLOAT64 ? "double" : "float";
    return """
    #include "kernels.cuh"

    struct Function {
      using To = %s;
      static DEVICE %s of([[maybe_unused]] %2$s x, [[maybe_unused]] i64 i) {
        return (%s);
      }
    };

    EXPRESSION(%s, %s, Function)
    """
        .formatted(
            sourceType(to), wide, text, from == to ? "Output" : "CastOutput", sourceType(from));
  }

  /// As `types.cuh` has it.
  private static String sourceType(DataType type) {
    return switch (type) {
      case FLOAT64 -> "Float64";
      case FLOAT32 -> "Float32";
      case FLOAT16 -> "Float16";
      case BFLOAT16 -> "Bfloat16";
      case FLOAT8_E4M3 -> "Float8E4M3";
      case FLOAT8_E5M2 -> "Float8E5M2";
      default -> throw new IllegalArgumentException(type + " (expected: a floating-point type)");
    };
  }

  private static String lower(DataType type) {
    return type.name().toLowerCase(Locale.ROOT);
  }

  /// As it is declared.
  @Override
  public String toString() {
    String types = from == to ? lower(from) : lower(from) + " " + ARROW + " " + lower(to);
    return types + ": " + text;
  }
}
