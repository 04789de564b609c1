package org.comm4j.cli;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.Set;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.RankKind;
import org.comm4j.api.spi.RankLauncher;
import org.comm4j.api.spi.Session;

/// `launched`: `shm`, but a script starts its ranks. Only on `COMM_PLUGIN_PATH`.
public final class LaunchedBackend implements BackendProvider {
  /// Starts ranks as Hydra does, by its environment; when one fails, or on SIGTERM, it ends the
  /// others, not before there is a file (`SCRIPT_AWAITS`) if one is named. It says something on
  /// both streams. As Open MPI does, it keeps something of the ranks (`SCRIPT_KEEPS`) that it
  /// removes in the end, but not when it hears of a second signal before. As both, it ends a
  /// program's arguments at a colon; here it refuses them.
  private static final String SCRIPT =
      """
      size=$1; shift
      for word in "$@"; do [[ $word != : ]] || exit 1; done
      echo "the launcher starts $size ranks"
      [[ $SCRIPT_KEEPS ]] && touch "$SCRIPT_KEEPS"
      finish() { [[ ! $SCRIPT_KEEPS ]] || rm "$SCRIPT_KEEPS"; exit $1; }
      signals=0
      trap 'if ((signals++)); then exit 1; fi; kill "${pids[@]}"' INT TERM
      pids=()
      for ((rank = 0; rank < size; rank++)); do
        PMI_RANK=$rank PMI_SIZE=$size MPI_LOCALRANKID=$rank MPI_LOCALNRANKS=$size "$@" &
        pids+=($!)
      done
      while ((${#pids[@]})); do
        for index in "${!pids[@]}"; do
          kill -0 "${pids[index]}" 2>/dev/null && continue
          wait "${pids[index]}"; code=$?
          unset "pids[index]"
          if ((code != 0)); then
            while [[ $SCRIPT_AWAITS && ! -e $SCRIPT_AWAITS ]]; do sleep 0.05; done
            echo "the launcher ends its ranks" >&2
            [[ $SCRIPT_IGNORES_FAILURES ]] || kill "${pids[@]}" 2>/dev/null
            wait
            finish $code
          fi
        done
        sleep 0.05
      done
      finish 0
      """;

  /// For [ServiceLoader].
  public LaunchedBackend() {}

  private static BackendProvider shm() {
    return ServiceLoader.load(BackendProvider.class).stream()
        .map(ServiceLoader.Provider::get)
        .filter(each -> each.name().equals("shm"))
        .findFirst()
        .orElseThrow();
  }

  @Override
  public String name() {
    return "launched";
  }

  @Override
  public String version() {
    return "1";
  }

  @Override
  public RankKind rankKind() {
    return RankKind.PROCESSES;
  }

  @Override
  public int priority() {
    return 1;
  }

  @Override
  public String reaches() {
    return "processes of one host";
  }

  @Override
  public Set<Capability> capabilities() {
    return shm().capabilities();
  }

  @Override
  public Availability availability(CommConfig config) {
    return switch (config.options().get("COMM_LAUNCHED_BY")) {
      case "nobody" -> Availability.unavailable("nobody is to launch it", "unset COMM_LAUNCHED_BY");
      case "an object" -> Availability.unavailable(readObject(), "unset COMM_LAUNCHED_BY");
      case null, default -> Availability.ready();
    };
  }

  /// What a JVM does that gets a serialized object.
  private static String readObject() {
    var bytes = new ByteArrayOutputStream();
    try (var out = new ObjectOutputStream(bytes)) {
      out.writeObject(new ArrayList<>(List.of("an element")));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    try (var in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      return "it has read " + in.readObject();
    } catch (IOException | ClassNotFoundException e) {
      return e.toString();
    }
  }

  @Override
  public Optional<RankLauncher> launcher(int ranks, CommConfig config) {
    return Optional.of(
        new RankLauncher(
            List.of("bash", "-c", SCRIPT, "script", Integer.toString(ranks)),
            Map.of("COMM_LAUNCHED_BY", "the script"),
            "PMI_RANK"));
  }

  @Override
  public Set<String> options() {
    return Set.of("BY");
  }

  @Override
  public BackendCommunicator open(Session session, CommConfig config) {
    return shm().open(session, config);
  }
}
