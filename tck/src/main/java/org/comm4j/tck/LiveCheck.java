package org.comm4j.tck;

import java.lang.annotation.Annotation;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.comm4j.api.Capabilities;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;

/// A check that all ranks of a communicator run together, each on its own thread or in its own
/// process: a method with a [Rule].
///
/// @param name what it shows: the method's name
/// @param rules which rules it is about
/// @param needs what it needs
/// @param method takes a [LiveRank]
record LiveCheck(String name, List<String> rules, Needs needs, Method method) {
  private static final List<Class<?>> COMMUNICATOR =
      List.of(
          DataChecks.class,
          CollectiveChecks.class,
          EpilogueChecks.class,
          MessageChecks.class,
          GroupChecks.class,
          ArgumentChecks.class,
          MismatchChecks.class,
          FailureChecks.class,
          ThreadChecks.class,
          LifeCycleChecks.class);

  /// All of a communicator.
  static List<LiveCheck> ofCommunicators() {
    return COMMUNICATOR.stream().flatMap(each -> of(each).stream()).toList();
  }

  /// All of shared memory.
  static List<LiveCheck> ofSharedMemory() {
    return of(SharedMemoryChecks.class);
  }

  /// All there are.
  static List<LiveCheck> all() {
    List<LiveCheck> all = new ArrayList<>(ofCommunicators());
    all.addAll(ofSharedMemory());
    return all;
  }

  private static List<LiveCheck> of(Class<?> checks) {
    return Arrays.stream(checks.getDeclaredMethods())
        .filter(method -> method.isAnnotationPresent(Rule.class))
        .sorted(Comparator.comparing(Method::getName))
        .map(LiveCheck::of)
        .toList();
  }

  private static LiveCheck of(Method method) {
    Needs needs = method.getAnnotation(Needs.class);
    return new LiveCheck(
        method.getName(),
        List.of(method.getAnnotation(Rule.class).value()),
        needs == null ? Nothing.NEEDS : needs,
        method);
  }

  /// Has the defaults.
  private static final class Nothing {
    static final Needs NEEDS = defaults();

    @Needs
    private static Needs defaults() {
      try {
        Annotation found = Nothing.class.getDeclaredMethod("defaults").getAnnotation(Needs.class);
        return (Needs) found;
      } catch (NoSuchMethodException e) {
        throw new AssertionError(e);
      }
    }
  }

  /// Why it can't run here, if so.
  ///
  /// @param hosts on how many the ranks are
  /// @param canDie whether a rank can be made to die
  Optional<String> notRun(
      Capabilities capabilities, int size, int hosts, CommConfig config, boolean canDie) {
    for (Capability needed : needs.capabilities()) {
      if (!capabilities.supports(needed)) {
        return Optional.of("the backend has no " + needed);
      }
    }
    List<String> declared = rules.stream().filter(capabilities.deviations()::containsKey).toList();
    if (!declared.isEmpty()) {
      String rule = declared.getFirst();
      return Optional.of(declared(rule, String.valueOf(capabilities.deviations().get(rule))));
    }
    if (size < needs.ranks()) {
      return Optional.of("it needs %d ranks".formatted(needs.ranks()));
    }
    if (needs.oneHost() && hosts > 1) {
      return Optional.of("it needs all ranks on one host");
    }
    if (!needs.setting().holds(config)) {
      return Optional.of("it needs another setting: " + needs.setting().variable());
    }
    if (needs.death() && !canDie) {
      return Optional.of("a rank would have to die");
    }
    return Optional.empty();
  }

  /// What the report says of a rule that a backend declares.
  static String declared(String rule, String reason) {
    return "the backend declares %s: %s".formatted(rule, reason);
  }

  /// Runs this rank's part.
  ///
  /// @throws RuleViolation if a rule is broken
  void run(LiveRank rank) {
    try {
      method.invoke(null, rank);
    } catch (InvocationTargetException e) {
      Throwable cause = e.getCause() == null ? e : e.getCause();
      switch (cause) {
        case RuleViolation violation -> throw violation;
        case LiveRank.Death death -> throw death;
        case VirtualMachineError error -> throw error;
        default ->
            throw new RuleViolation(
                String.join(" ", rules),
                "%s on rank %d failed: %s".formatted(name, rank.rank(), Expect.text(cause)),
                cause);
      }
    } catch (IllegalAccessException e) {
      throw new AssertionError(e);
    }
  }

  @Override
  public String toString() {
    return String.join(" ", rules) + " " + name;
  }
}
