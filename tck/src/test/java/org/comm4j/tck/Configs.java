package org.comm4j.tck;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Secret;
import org.comm4j.core.session.DefaultSessionFactory;

/// Configurations for sessions.
final class Configs {
  private Configs() {}

  /// Over TCP on this host, hosted by rank 0.
  static CommConfig.Builder tcp(int worldSize, int port) {
    return CommConfig.builder()
        .rank(0)
        .worldSize(worldSize)
        .masterAddress("127.0.0.1")
        .masterPort(port)
        .session("job")
        .joinTimeout(Duration.ofSeconds(20));
  }

  /// Over TCP on this host, hosted by a server.
  static CommConfig.Builder launched(int worldSize, int port) {
    return tcp(worldSize, port).option(DefaultSessionFactory.HOSTED, "launcher");
  }

  /// The same, whose ranks know a secret.
  static CommConfig.Builder secret(int worldSize, int port) {
    return launched(worldSize, port).secret(Secret.of("0123456789abcdef"));
  }

  /// Over a file on this host.
  static CommConfig.Builder file(int worldSize, Path directory) {
    return CommConfig.builder()
        .rank(0)
        .worldSize(worldSize)
        .session("job")
        .joinTimeout(Duration.ofSeconds(20))
        .option(DefaultSessionFactory.DIRECTORY, directory.toString());
  }

  /// The variables from which a process makes this configuration.
  static Map<String, String> environment(CommConfig config) {
    var variables = new LinkedHashMap<String, String>(config.options());
    variables.put("COMM_RANK", String.valueOf(config.rank().orElseThrow()));
    variables.put("COMM_WORLD_SIZE", String.valueOf(config.worldSize().orElseThrow()));
    config.masterAddress().ifPresent(address -> variables.put("COMM_MASTER_ADDR", address));
    config.masterPort().ifPresent(port -> variables.put("COMM_MASTER_PORT", String.valueOf(port)));
    config.session().ifPresent(session -> variables.put("COMM_SESSION", session));
    config
        .secret()
        .ifPresent(secret ->
            variables.put("COMM_SECRET", new String(secret.bytes(), StandardCharsets.UTF_8)));
    variables.put("COMM_LIVENESS", config.liveness().toMillis() + "ms");
    variables.put("COMM_JOIN_TIMEOUT", config.joinTimeout().toMillis() + "ms");
    return variables;
  }
}
