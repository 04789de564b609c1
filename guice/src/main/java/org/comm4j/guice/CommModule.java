package org.comm4j.guice;

import com.google.inject.AbstractModule;
import com.google.inject.Provides;
import com.google.inject.Singleton;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.comm4j.api.BackendInfo;
import org.comm4j.api.Backends;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.SharedMemoryProvider;
import org.jspecify.annotations.Nullable;

/// Binds what an application needs to communicate:
///
/// | type | what |
/// |---|---|
/// | [CommConfig] | the configuration that the module was given |
/// | [Communicator] | this rank's, of all ranks; opened when it is first asked for |
/// | [SharedMemoryProvider] | that communicator's; to ask for it is a call on it, as all that it does |
/// | [CommLifecycle] | closes the communicator, if it was opened |
/// | `List<BackendInfo>` | every backend that discovery found, most preferred first |
/// | `Map<String, BackendInfo>` | the same by name |
///
/// An application injects [Communicator] where it is used and closes the lifecycle at its end:
///
/// {@snippet file="org/comm4j/guice/GuiceExample.java" region="application"}
///
/// On JDK 25 Guice warns of `sun.misc.Unsafe` unless it runs with
/// `-Dguice_bytecode_gen_option=DISABLED`.
///
/// Opening is lazy, so an injector that is built for other things joins no group. Where it fails,
/// asking the injector for a [Communicator] throws Guice's `ProvisionException`, whose cause is
/// what [CommLifecycle#communicator()] throws. Modules with equal configurations are equal, so
/// several may be installed; others contradict each other.
public final class CommModule extends AbstractModule {
  private final CommConfig config;

  /// A module that reads the configuration from the environment.
  public CommModule() {
    this(CommConfig.fromEnvironment(System.getenv()));
  }

  /// A module with a configuration of the application's.
  ///
  /// @param config what to open
  public CommModule(CommConfig config) {
    this.config = config;
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof CommModule module && config.equals(module.config);
  }

  @Override
  public int hashCode() {
    return config.hashCode();
  }

  @Override
  protected void configure() {
    bind(CommConfig.class).toInstance(config);
    bind(CommLifecycle.class).in(Singleton.class);
  }

  @Provides
  Communicator communicator(CommLifecycle lifecycle) {
    return lifecycle.communicator();
  }

  @Provides
  SharedMemoryProvider sharedMemory(CommLifecycle lifecycle) {
    return lifecycle.communicator().sharedMemory();
  }

  @Provides
  @Singleton
  List<BackendInfo> backends() {
    return Backends.availableBackends(config);
  }

  @Provides
  @Singleton
  Map<String, BackendInfo> backendsByName(List<BackendInfo> backends) {
    Map<String, BackendInfo> byName = new LinkedHashMap<>();
    backends.forEach(each -> byName.putIfAbsent(each.name(), each));
    return Collections.unmodifiableMap(byName);
  }
}
