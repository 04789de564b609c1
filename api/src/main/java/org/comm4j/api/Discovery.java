package org.comm4j.api;

import java.net.URL;
import java.security.CodeSource;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.comm4j.api.BackendInfo.Status;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.RankKind;
import org.jspecify.annotations.Nullable;

/// Finds every backend there is. Whatever a provider does wrong becomes a row with its reason: one
/// bad jar never hides the others.
final class Discovery {
  private static final System.Logger LOG = System.getLogger("org.comm4j.api");
  private static final Pattern NAME = Pattern.compile("[a-z][a-z0-9-]*");
  private static final int MAX_PRIORITY = 100;
  private static final String LISTING_FAILED = "its listing failed: ";
  private static final Comparator<Found> BEST_FIRST =
      Comparator.comparingInt(Found::priority)
          .reversed()
          .thenComparing(Found::name)
          .thenComparing(Found::source);

  /// A backend that was found. Whether this host has what it needs is asked once somebody wants to
  /// know: that takes time, and most that are found are not used.
  static final class Found {
    private final BackendInfo plain;
    private final Supplier<BackendInfo> asking;
    private final @Nullable BackendProvider provider;
    private final String source;
    private final Set<String> options;
    private @Nullable BackendInfo info;

    /// @param plain what it is, wherever it is
    /// @param asking tells that and whether it can be used here
    /// @param provider null if it is broken
    /// @param source its class and where that is from, for people
    /// @param options what it understands, without the prefix `COMM_<NAME>_`
    Found(
        BackendInfo plain,
        Supplier<BackendInfo> asking,
        @Nullable BackendProvider provider,
        String source,
        Set<String> options) {
      this.plain = plain;
      this.asking = asking;
      this.provider = provider;
      this.source = source;
      this.options = options;
    }

    /// What is too broken to be asked anything.
    static Found broken(BackendInfo info, String source, Set<String> options) {
      return new Found(info, () -> info, null, source, options);
    }

    /// Without details and advice.
    synchronized BackendInfo info() {
      BackendInfo known = info == null ? asking.get() : info;
      info = known;
      return known;
    }

    String name() {
      return plain.name();
    }

    int priority() {
      return plain.priority();
    }

    Optional<RankKind> kind() {
      return plain.kind();
    }

    @Nullable BackendProvider provider() {
      return provider;
    }

    String source() {
      return source;
    }

    Set<String> options() {
      return options;
    }

    boolean isReady() {
      return info().isReady();
    }

    boolean isBroken() {
      return info().status() == Status.BROKEN;
    }

    boolean hasKind(RankKind kind) {
      return plain.kind().equals(Optional.of(kind));
    }

    boolean launchesThreads() {
      return provider != null && provider.launchesThreads();
    }
  }

  private final CommConfig config;
  private final List<Found> found = new ArrayList<>();

  private Discovery(CommConfig config) {
    this.config = config;
  }

  /// {@return all backends, the most preferred first}
  static List<Found> find(CommConfig config) {
    return find(config, Services.loader());
  }

  static List<Found> find(CommConfig config, ClassLoader parent) {
    var discovery = new Discovery(config);
    PluginPath plugins = PluginPath.of(config.pluginPath().orElse(""), parent);
    plugins.problems().forEach(discovery::broken);
    Services.forEach(
        BackendProvider.class,
        plugins.loader(),
        discovery::read,
        (className, failure) -> discovery.notLoaded(className, plugins.loader(), failure));
    return discovery.withoutDuplicates();
  }

  /// Refuses options that no backend understands, and values that their own does not, whichever is
  /// used; what one that is broken would understand, nobody knows.
  static void checkOptions(List<Found> found, CommConfig config) {
    Map<String, Set<String>> options = new HashMap<>();
    for (Found each : found) {
      options.merge(each.name(), each.options(), Discovery::union);
    }
    found.stream()
        .filter(each -> each.provider() == null && each.options().isEmpty())
        .forEach(
            each -> options.merge(each.name(), config.optionsOf(each.name()), Discovery::union));
    config.checkOptions(options, unreadable(found));
    found.forEach(each -> checkOptions(each, config));
  }

  /// Those of which not even the name is known.
  static String unreadable(List<Found> found) {
    String names =
        found.stream()
            .filter(each -> !NAME.matcher(each.name()).matches())
            .map(Found::info)
            .map(info -> info.name() + ": " + info.reason().orElse(""))
            .collect(Collectors.joining("; "));
    return names.isEmpty() ? "" : "; broken here, so it may be for that: " + names;
  }

  /// Whatever else a stranger's provider throws does not keep others from being used.
  private static void checkOptions(Found each, CommConfig config) {
    BackendProvider provider = each.provider();
    if (provider == null) {
      return;
    }
    try {
      provider.checkOptions(config);
    } catch (IllegalArgumentException refusal) {
      throw refusal;
    } catch (RuntimeException | Error e) {
      String reason = "its check of options failed: " + text(e);
      String remedy = "update or remove " + each.source();
      if (each.name().equals(config.backend())) {
        throw new BackendUnavailableException(each.name(), reason, remedy);
      }
      LOG.log(
          System.Logger.Level.WARNING, "backend ''{0}'': {1}; {2}", each.name(), reason, remedy);
    }
  }

  private static Set<String> union(Set<String> some, Set<String> others) {
    Set<String> union = new HashSet<>(some);
    union.addAll(others);
    return union;
  }

  private void notLoaded(String className, ClassLoader loader, Throwable failure) {
    URL file = loader.getResource(className.replace('.', '/') + ".class");
    broken(
        className,
        "it can't be loaded: " + text(failure),
        className + (file == null ? "" : " (" + file.getPath() + ")"));
  }

  private void read(ServiceLoader.Provider<BackendProvider> service) {
    String source = source(service.type());
    String name = service.type().getName();
    String step = "it can't be made: ";
    try {
      BackendProvider provider = service.get();
      step = "its name() failed: ";
      name = validName(given(provider.name()));
      step = LISTING_FAILED;
      found.add(listed(name, provider, source));
    } catch (Throwable e) { // whatever a stranger's provider does, the others are listed
      broken(name, step + text(e), source);
    }
  }

  private Found listed(String name, BackendProvider provider, String source) {
    BackendInfo plain =
        new BackendInfo(
            name,
            Status.READY,
            Optional.of(given(provider.rankKind())),
            validPriority(provider.priority()),
            given(provider.reaches()),
            given(provider.version()),
            Set.copyOf(provider.capabilities()),
            Map.of(),
            List.of(),
            Optional.empty(),
            Optional.empty());
    return new Found(
        plain,
        () -> orBroken(name, source, () -> asked(plain, provider, config)),
        provider,
        source,
        Set.copyOf(provider.options()));
  }

  private static BackendInfo asked(BackendInfo plain, BackendProvider provider, CommConfig config) {
    Optional<String> refusal = refusal(provider, config);
    if (refusal.isPresent()) {
      return plain.unavailable(refusal.get(), "correct what that names");
    }
    return switch (given(provider.availability(config))) {
      case Availability.Ready _ -> plain;
      case Availability.Unavailable missing ->
          plain.unavailable(given(missing.reason()), given(missing.remedy()));
    };
  }

  /// {@return what is wrong with the values of its options}
  private static Optional<String> refusal(BackendProvider provider, CommConfig config) {
    try {
      provider.checkOptions(config);
      return Optional.empty();
    } catch (IllegalArgumentException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  /// {@return all backends as listings show them, the most preferred first}
  static List<BackendInfo> list(CommConfig config) {
    return find(config).stream().map(each -> detailed(each, config)).toList();
  }

  private static BackendInfo detailed(Found each, CommConfig config) {
    BackendInfo info = each.info();
    BackendProvider provider = each.provider();
    if (provider == null || each.isBroken()) {
      return info;
    }
    return orBroken(
        each.name(),
        each.source(),
        () ->
            refusal(provider, config).isPresent()
                ? info
                : info.detailed(given(provider.details(config)), given(provider.advice(config))));
  }

  /// Whatever a stranger's provider does, the others are listed.
  private static BackendInfo orBroken(String name, String source, Supplier<BackendInfo> listing) {
    try {
      return listing.get();
    } catch (Throwable e) {
      return brokenInfo(name, LISTING_FAILED + text(e), source);
    }
  }

  private static String validName(String name) {
    if (!NAME.matcher(name).matches() || name.equals(CommConfig.AUTO)) {
      throw new IllegalArgumentException(
          "'%s' (expected: lower-case letters, digits and dashes, starting with a letter, not '%s')"
              .formatted(name, CommConfig.AUTO));
    }
    return name;
  }

  private static int validPriority(int priority) {
    if (priority < 0 || priority > MAX_PRIORITY) {
      throw new IllegalArgumentException(
          "priority: %d (expected: 0..%d)".formatted(priority, MAX_PRIORITY));
    }
    return priority;
  }

  /// A provider is a stranger: its results may be null whatever the types say.
  private static <T> T given(@Nullable T value) {
    if (value == null) {
      throw new IllegalArgumentException("null (expected: a value)");
    }
    return value;
  }

  private void broken(PluginPath.Problem plugin) {
    BackendInfo info =
        brokenInfo(plugin.entry(), Optional.empty(), plugin.reason(), plugin.remedy());
    found.add(Found.broken(info, plugin.entry(), Set.of()));
  }

  private void broken(String name, String reason, String source) {
    found.add(Found.broken(brokenInfo(name, reason, source), source, Set.of()));
  }

  private static BackendInfo brokenInfo(String name, String reason, String source) {
    return brokenInfo(name, Optional.empty(), reason, "update or remove " + source);
  }

  private static BackendInfo brokenInfo(
      String name, Optional<RankKind> kind, String reason, String remedy) {
    return new BackendInfo(
        name,
        Status.BROKEN,
        kind,
        0,
        "",
        "",
        Set.of(),
        Map.of(),
        List.of(),
        Optional.of(reason),
        Optional.of(remedy));
  }

  /// Turns all that share a name into broken ones, for none has a better right to it, and sorts.
  private List<Found> withoutDuplicates() {
    Map<String, List<Found>> byName = new HashMap<>();
    for (Found each : found) {
      byName.computeIfAbsent(each.name(), _ -> new ArrayList<>()).add(each);
    }
    return found.stream()
        .map(each -> distinct(each, byName.getOrDefault(each.name(), List.of())))
        .sorted(BEST_FIRST)
        .toList();
  }

  private static Found distinct(Found each, List<Found> sameName) {
    if (sameName.size() == 1 || !NAME.matcher(each.name()).matches()) {
      return each;
    }
    String sources = String.join(" and ", sameName.stream().map(Found::source).sorted().toList());
    return Found.broken(
        brokenInfo(
            each.name(),
            each.kind(),
            "%d backends have this name: %s".formatted(sameName.size(), sources),
            "keep one of them on the class path"),
        each.source(),
        each.options());
  }

  private static String source(Class<?> type) {
    String location = null;
    try {
      CodeSource code = type.getProtectionDomain().getCodeSource();
      location = code == null || code.getLocation() == null ? null : code.getLocation().getPath();
    } catch (RuntimeException _) {
      // A class loader need not tell.
    }
    return type.getName() + (location == null ? "" : " (" + location + ")");
  }

  /// What happened, and what was behind it.
  private static String text(Throwable failure) {
    Throwable root = failure;
    for (int depth = 0; root.getCause() != null && depth < 10; depth++) {
      root = root.getCause();
    }
    return root.equals(failure) ? failure.toString() : failure.getMessage() + ": " + root;
  }
}
