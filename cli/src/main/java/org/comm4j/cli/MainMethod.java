package org.comm4j.cli;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A program's main method, found as the `java` launcher does: with arguments before without,
/// static or of an object that is made for it.
final class MainMethod {
  private final Class<?> program;
  private final Method method;

  private MainMethod(Class<?> program, Method method) {
    this.program = program;
    this.method = method;
  }

  /// Finds it.
  ///
  /// @throws IllegalArgumentException if there is none
  static MainMethod of(ClassLoader loader, String className) throws ClassNotFoundException {
    Class<?> program = Class.forName(className, true, loader);
    Method method = find(program);
    if (method == null) {
      throw new IllegalArgumentException(
          className + ": no main method (expected: static void main(String[] args))");
    }
    return new MainMethod(program, method);
  }

  /// Whether there is one; runs nothing of the class.
  static boolean isIn(ClassLoader loader, String className) {
    try {
      return find(Class.forName(className, false, loader)) != null;
    } catch (ClassNotFoundException e) {
      throw new IllegalArgumentException(className + ": no such class", e);
    }
  }

  private static @Nullable Method find(Class<?> program) {
    Method withArguments = main(program, String[].class);
    return withArguments != null ? withArguments : main(program);
  }

  private static @Nullable Method main(Class<?> program, Class<?>... parameters) {
    for (Class<?> each = program;
        each != null && each != Object.class;
        each = each.getSuperclass()) {
      try {
        Method method = each.getDeclaredMethod("main", parameters);
        if (!Modifier.isPrivate(method.getModifiers())) {
          method.setAccessible(true);
          return method;
        }
      } catch (NoSuchMethodException _) {
        // then the class above it
      }
    }
    return null;
  }

  void invoke(List<String> arguments) throws Throwable {
    Object target = null;
    if (!Modifier.isStatic(method.getModifiers())) {
      var constructor = program.getDeclaredConstructor();
      constructor.setAccessible(true);
      target = constructor.newInstance();
    }
    try {
      if (method.getParameterCount() == 0) {
        method.invoke(target);
      } else {
        method.invoke(target, (Object) arguments.toArray(String[]::new));
      }
    } catch (InvocationTargetException e) {
      throw e.getCause() == null ? e : e.getCause();
    }
  }
}
