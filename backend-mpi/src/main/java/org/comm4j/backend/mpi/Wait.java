package org.comm4j.backend.mpi;

import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.OptionText;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.Processors;

/// How a rank waits for others, `COMM_MPI_WAIT`.
enum Wait {
  /// [#TEST] where the ranks of some host outnumber its cores, else [#NATIVE].
  AUTO,
  /// In the library's blocking functions: fastest, without deadlines; a watchdog ends the job.
  NATIVE,
  /// Outside: non-blocking functions, tests, yields. Deadlines throw, and ranks may outnumber
  /// cores.
  TEST;

  static final String OPTION = "COMM_MPI_WAIT";

  /// {@return what is configured}
  ///
  /// @throws IllegalArgumentException if that is none of these
  static Wait of(CommConfig config) {
    return OptionText.of(config, OPTION).map(text -> text.word(Wait.class)).orElse(AUTO);
  }

  /// Whether blocking calls of a launch wait in the library. To MPI a blocking collective and a
  /// non-blocking one are two operations, so all ranks wait in it or none does: one host may have
  /// fewer processors for its ranks than another, or one JVM be told of fewer.
  ///
  /// @throws org.comm4j.api.CommException if a rank does not come by the time to join
  static boolean agree(Session session, CommConfig config) {
    boolean here =
        ThreadLevel.of(config) == ThreadLevel.MULTIPLE
            && of(config).isInLibrary(Processors.areFewerThanRanks(session));
    byte[] mine = {(byte) (here ? 1 : 0)};
    return session.exchange("mpi/wait", mine, config.joinTimeout()).stream()
        .allMatch(answer -> answer[0] == 1);
  }

  /// Whether blocking calls are to wait in the library, as far as this rank knows.
  ///
  /// @param oversubscribed whether there are more ranks on this host than processors for them
  boolean isInLibrary(boolean oversubscribed) {
    return this == NATIVE || (this == AUTO && !oversubscribed);
  }
}
