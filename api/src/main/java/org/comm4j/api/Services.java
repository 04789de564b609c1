package org.comm4j.api;

import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import java.util.Spliterator;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Services on the class path, found without letting a broken one get in the way of the others.
final class Services {
  private static final System.Logger LOG = System.getLogger("org.comm4j.api");

  /// More broken entries than any class path has; a loader that reports more does not move on.
  private static final int MAX_BROKEN = 1000;

  private static final Pattern CLASS_NAME = Pattern.compile("(?<![\\w./:-])\\w+(\\.[\\w$]+)+(?= )");

  private Services() {}

  /// The class loader that services come from: the thread's context class loader where it sees this
  /// API, else the API's own.
  static ClassLoader loader() {
    ClassLoader own = Services.class.getClassLoader();
    ClassLoader context = Thread.currentThread().getContextClassLoader();
    return context != null && seesThisApi(context) ? context : own;
  }

  private static boolean seesThisApi(ClassLoader loader) {
    try {
      return Class.forName(Services.class.getName(), false, loader) == Services.class;
    } catch (ClassNotFoundException | LinkageError e) {
      return false;
    }
  }

  /// Goes through all providers of a service.
  ///
  /// @param provider gets each one whose class is there; not yet made
  /// @param broken gets the class's name, as far as known, and what happened to each other one
  static <S> void forEach(
      Class<S> service,
      ClassLoader loader,
      Consumer<ServiceLoader.Provider<S>> provider,
      BiConsumer<String, Throwable> broken) {
    Spliterator<ServiceLoader.Provider<S>> providers =
        ServiceLoader.load(service, loader).stream().spliterator();
    for (int failures = 0; failures < MAX_BROKEN; ) {
      try {
        if (!providers.tryAdvance(provider)) {
          return;
        }
      } catch (Throwable e) { // whatever a stranger's jar does, the others are listed
        failures++;
        broken.accept(nameIn(e.getMessage()), e);
      }
    }
  }

  private static String nameIn(@Nullable String message) {
    Matcher matcher = CLASS_NAME.matcher(message == null ? "" : message + " ");
    return matcher.find() ? matcher.group() : "(unknown)";
  }

  /// All providers that can be made; the others are logged.
  static <S> List<S> usable(Class<S> service, ClassLoader loader) {
    List<S> found = new ArrayList<>();
    BiConsumer<String, Throwable> broken =
        (name, failure) ->
            LOG.log(
                System.Logger.Level.WARNING,
                "%s '%s' can't be used".formatted(service.getSimpleName(), name),
                failure);
    forEach(
        service,
        loader,
        provider -> {
          try {
            found.add(provider.get());
          } catch (Throwable e) { // as above
            broken.accept(provider.type().getName(), e);
          }
        },
        broken);
    return found;
  }
}
