package org.comm4j.cli;

import java.io.PrintWriter;
import java.util.Locale;

/// What [Bench] prints: a line for each point as soon as it is measured, JSON at the end.
final class BenchReport {
  private static final String CSV =
      "system,transport,np,op,dtype,bytes,usec_median,usec_min,busbw_GBps,xcore_ns";

  private final Listing.Format format;
  private final PrintWriter out;
  private final String transport;
  private final int ranks;
  private final BenchTimes before;
  private final BenchTimes times = new BenchTimes();
  private final Listing json =
      new Listing(
          "system",
          "transport",
          "np",
          "op",
          "dtype",
          "bytes",
          "count",
          "reduction",
          "usec_median",
          "usec_min",
          "algbw_GBps",
          "busbw_GBps",
          "xcore_ns",
          "wrong");

  /// @param transport the backend's name, and what memory where it is not the usual one
  /// @param before what was measured of the same without some settings; may be nothing
  BenchReport(
      Listing.Format format, PrintWriter out, String transport, int ranks, BenchTimes before) {
    this.format = format;
    this.out = out;
    this.transport = transport;
    this.ranks = ranks;
    this.before = before;
  }

  /// A measured point.
  ///
  /// @param type `none` where there is no data
  /// @param reduction `none` where nothing is combined
  record Point(
      BenchOperation operation,
      String type,
      String reduction,
      long bytes,
      long count,
      BenchHarness.Time time,
      long wrong) {}

  void begin() {
    switch (format) {
      case CSV -> out.println(CSV);
      case TABLE -> {
        out.printf("# %d ranks, %s; time in µs, bandwidth in 10^9 B/s%n", ranks, transport);
        out.printf(
            "%-15s %12s %12s %8s %12s %12s %12s %9s %9s %7s %8s%s%n",
            "operation",
            "bytes",
            "count",
            "type",
            "reduction",
            "time",
            "least",
            "algbw",
            "busbw",
            "wrong",
            "xcore_ns",
            before.isEmpty() ? "" : "  as long");
      }
      case JSON -> {
        // all at once, at the end
      }
    }
    out.flush();
  }

  void add(Point point) {
    BenchHarness.Time time = point.time();
    times.add(point.operation(), point.bytes(), time);
    String name = point.operation().label();
    double algorithmBandwidth = bandwidth((double) point.bytes(), time);
    double busBandwidth = bandwidth(point.operation().busBytes(point.bytes(), ranks), time);
    switch (format) {
      case CSV ->
          out.printf(
              Locale.ROOT,
              "comm4j,%s,%d,%s,%s,%d,%.3f,%.3f,%.4f,%.0f%n",
              transport,
              ranks,
              name,
              point.type(),
              point.bytes(),
              time.medianUs(),
              time.minUs(),
              busBandwidth,
              time.crossNs());
      case TABLE ->
          out.printf(
              Locale.ROOT,
              "%-15s %12d %12d %8s %12s %12.2f %12.2f %9.3f %9.3f %7d %8.0f%s%n",
              name,
              point.bytes(),
              point.count(),
              point.type(),
              point.reduction(),
              time.medianUs(),
              time.minUs(),
              algorithmBandwidth,
              busBandwidth,
              point.wrong(),
              time.crossNs(),
              ratio(point));
      case JSON ->
          json.row(
              "comm4j",
              transport,
              ranks,
              name,
              point.type(),
              point.bytes(),
              point.count(),
              point.reduction(),
              time.medianUs(),
              time.minUs(),
              algorithmBandwidth,
              busBandwidth,
              time.crossNs(),
              point.wrong());
    }
    out.flush();
  }

  private String ratio(Point point) {
    if (before.isEmpty()) {
      return "";
    }
    return before
        .ratio(point.operation(), point.bytes(), point.time())
        .map(ratio -> String.format(Locale.ROOT, "%9.2f", ratio))
        .orElse("        -"); // the machine has changed in between
  }

  /// {@return all that was added}
  BenchTimes times() {
    return times;
  }

  void end() {
    if (format == Listing.Format.JSON) {
      json.print(format, out);
    }
  }

  /// In 10⁹ bytes a second.
  private static double bandwidth(double bytes, BenchHarness.Time time) {
    return time.medianUs() > 0 ? bytes / time.medianUs() / 1e3 : 0;
  }
}
