package org.comm4j.guice;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.inject.CreationException;
import com.google.inject.Guice;
import com.google.inject.Key;
import com.google.inject.ProvisionException;
import com.google.inject.TypeLiteral;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.FutureTask;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.comm4j.api.BackendInfo;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.ClosedException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.SharedMemoryProvider;
import org.junit.jupiter.api.Test;

final class CommModuleTest {
  private static final CommConfig NO_BACKEND = CommConfig.builder().backend("nowhere").build();
  private static final CommConfig LOCAL = CommConfig.builder().backend("local").build();

  @Test
  void injector_withoutCommunicator_opensNothing() {
    var injector = Guice.createInjector(new CommModule(NO_BACKEND));

    assertThat(injector.getInstance(CommConfig.class)).isSameAs(NO_BACKEND);
    injector.getInstance(CommLifecycle.class).close();
  }

  /// As where two libraries of an application bring it.
  @Test
  void module_installedTwice_isOne() {
    CommConfig same = LOCAL.toBuilder().build();
    var injector =
        Guice.createInjector(new CommModule(LOCAL), binder -> binder.install(new CommModule(same)));

    try (var lifecycle = injector.getInstance(CommLifecycle.class)) {
      assertThat(injector.getInstance(Communicator.class)).isSameAs(lifecycle.communicator());
    }
    assertThatThrownBy(
            () -> Guice.createInjector(new CommModule(LOCAL), new CommModule(NO_BACKEND)))
        .isInstanceOf(CreationException.class);
  }

  @Test
  void communicator_failsToOpen_isTheCauseOfWhatTheInjectorThrows() {
    var injector = Guice.createInjector(new CommModule(NO_BACKEND));

    assertThatThrownBy(() -> injector.getInstance(Communicator.class))
        .isInstanceOf(ProvisionException.class)
        .hasCauseInstanceOf(BackendUnavailableException.class);
  }

  @Test
  void backends_areThoseThatAreThere() {
    var injector = Guice.createInjector(new CommModule(NO_BACKEND));

    var backends = injector.getInstance(Key.get(new TypeLiteral<Map<String, BackendInfo>>() {}));

    assertThat(backends).containsOnlyKeys("local", "shm");
  }

  @Test
  void communicator_isOpenedOnceAndClosedByTheLifecycle() {
    var injector = Guice.createInjector(new CommModule(LOCAL));
    Communicator communicator = injector.getInstance(Communicator.class);

    assertThat(communicator.backend()).isEqualTo("local");
    assertThat(communicator.size()).isEqualTo(1);
    assertThat(injector.getInstance(Communicator.class)).isSameAs(communicator);
    var lifecycle = injector.getInstance(CommLifecycle.class);
    assertThat(injector.getInstance(CommLifecycle.class)).isSameAs(lifecycle);
    assertThat(lifecycle.communicator()).isSameAs(communicator);
    assertThat(communicator.isClosed()).isFalse();

    lifecycle.close();
    assertThat(communicator.isClosed()).isTrue();
    lifecycle.close();
    assertThatThrownBy(() -> injector.getInstance(Communicator.class))
        .rootCause()
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
  }

  /// As a shutdown hook does: the JVM need not stay until the others have come.
  @Test
  void close_anotherThreadWaitsForRanks_doesNotWait() throws Exception {
    CommConfig alone =
        CommConfig.builder()
            .backend("shm")
            .rank(0)
            .worldSize(2)
            .session("guice-" + UUID.randomUUID())
            .build();
    var injector = Guice.createInjector(new CommModule(alone));
    var lifecycle = injector.getInstance(CommLifecycle.class);
    var opening = new FutureTask<>(lifecycle::communicator);
    Thread thread = Thread.ofPlatform().daemon().start(opening);
    while (thread.isAlive() && !waitsForRanks(thread)) {
      Thread.onSpinWait();
    }

    lifecycle.close();

    assertThat(opening).isNotDone();
    thread.interrupt();
    assertThatThrownBy(opening::get).hasCauseInstanceOf(InterruptedCallException.class);
    assertThatThrownBy(lifecycle::communicator).hasMessageContaining("closed");
  }

  /// On its way there it waits for other things, as when the classes of a backend are loaded.
  private static boolean waitsForRanks(Thread thread) {
    return Stream.of(thread.getStackTrace())
        .anyMatch(frame ->
            frame.getClassName().endsWith(".DefaultSessionFactory")
                && frame.getMethodName().equals("await"));
  }

  @Test
  void sharedMemory_isTheCommunicators() {
    var injector = Guice.createInjector(new CommModule(LOCAL));
    SharedMemoryProvider memory;
    try (var lifecycle = injector.getInstance(CommLifecycle.class)) {
      memory = injector.getInstance(SharedMemoryProvider.class);
      assertThat(memory.isLeader()).isTrue();
      assertThat(lifecycle.communicator().isClosed()).isFalse();
    }
    assertThatThrownBy(() -> memory.createRegion(DataType.INT32, 1))
        .isInstanceOf(ClosedException.class);
  }

  @Test
  void example_localBackend_averages() {
    float[] gradients = {1, 2};
    GuiceExample.train(LOCAL, gradients);
    assertThat(gradients).containsExactly(1, 2);
  }

  @Test
  void backendsByName_areInTheOrderOfPreference() {
    List<BackendInfo> backends = IntStream.range(0, 20).mapToObj(CommModuleTest::backend).toList();

    assertThat(new CommModule(NO_BACKEND).backendsByName(backends).values())
        .containsExactlyElementsOf(backends);
  }

  private static BackendInfo backend(int number) {
    return new BackendInfo(
        "backend-" + (7919 * number) % 101, // so that their hashes are in no order
        BackendInfo.Status.READY,
        Optional.empty(),
        100 - number,
        "here",
        "1",
        Set.of(),
        Map.of(),
        List.of(),
        Optional.empty(),
        Optional.empty());
  }

  /// Guice can't say so itself; without it `java -m` does not find its classes.
  @Test
  void module_asksForTheModulesOfGuice() throws Exception {
    var classes =
        Path.of(CommModule.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    var module = ModuleFinder.of(classes).find("org.comm4j.guice").orElseThrow().descriptor();

    assertThat(module.requires())
        .extracting(ModuleDescriptor.Requires::name)
        .contains("com.google.common", "jakarta.inject");
  }

  @Test
  void communicator_backendNotThere_saysSo() {
    var injector = Guice.createInjector(new CommModule(NO_BACKEND));
    var lifecycle = injector.getInstance(CommLifecycle.class);

    assertThatThrownBy(lifecycle::communicator)
        .isInstanceOf(BackendUnavailableException.class)
        .hasMessageContaining("nowhere");
  }

  @Test
  void communicator_afterClose_isRefused() {
    var lifecycle =
        Guice.createInjector(new CommModule(NO_BACKEND)).getInstance(CommLifecycle.class);
    lifecycle.close();

    assertThatThrownBy(lifecycle::communicator)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
  }

  @Test
  void example_backendNotThere_saysSo() {
    assertThatThrownBy(() -> GuiceExample.train(NO_BACKEND, new float[1]))
        .rootCause()
        .isInstanceOf(BackendUnavailableException.class);
  }
}
