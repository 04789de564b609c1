package org.comm4j.cli;

import com.google.inject.Guice;
import com.google.inject.Injector;
import com.google.inject.Key;
import com.google.inject.TypeLiteral;
import java.util.List;
import org.comm4j.api.BackendInfo;
import org.comm4j.api.CommConfig;
import org.comm4j.guice.CommLifecycle;
import org.comm4j.guice.CommModule;

/// What commands and their ranks use of comm4j, wired as an application's is.
final class Wiring {
  static { // read when Guice is first used, which else warns of sun.misc.Unsafe
    System.setProperty("guice_bytecode_gen_option", "DISABLED");
  }

  private Wiring() {}

  /// {@return every backend that was found, the most preferred first} Never throws.
  static List<BackendInfo> backends(CommConfig config) {
    return injector(config).getInstance(Key.get(new TypeLiteral<List<BackendInfo>>() {}));
  }

  /// {@return what opens this rank's communicator when it is first asked for, and closes it}
  static CommLifecycle lifecycle(CommConfig config) {
    return injector(config).getInstance(CommLifecycle.class);
  }

  private static Injector injector(CommConfig config) {
    return Guice.createInjector(new CommModule(config));
  }
}
