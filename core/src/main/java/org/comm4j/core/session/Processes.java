package org.comm4j.core.session;

import java.io.FileInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.regex.Pattern;
import org.comm4j.api.spi.Session;

/// The processes of ranks that are gone for the session. A rank may lose its connection and live
/// on: how its end is known says less than its process does, where that can be asked.
public final class Processes {
  private static final Pattern SPACE = Pattern.compile(" ");
  private static final int STATE = 0; // of what follows the name, see proc_pid_stat(5)
  private static final int THREADS = 17;

  private Processes() {}

  /// {@return whether the process of a rank that has failed or left may still run} One of this host
  /// is asked for by its number: hosts are equal only where processes have the same numbers. Of
  /// others nothing is known but what the session says of the end.
  ///
  /// @param session in which the rank is
  /// @param failure how it is gone
  public static boolean mayGoOn(Session session, Session.Failure failure) {
    Session.Member there = session.member(failure.rank());
    boolean isOfThisHost = there.host().id().equals(session.member(session.rank()).host().id());
    return isOfThisHost ? mayRun(there.pid()) : failure.mayGoOn();
  }

  /// Whether a process of this host has any thread that may run. One that has ended and that nobody
  /// has asked how (a zombie) has none; but one may go on whose first thread has ended.
  private static boolean mayRun(long pid) {
    // not a channel: an interrupt of the calling thread would close that
    try (var stat = new FileInputStream("/proc/" + pid + "/stat")) {
      return mayRun(new String(stat.readAllBytes(), StandardCharsets.ISO_8859_1));
    } catch (IOException e) {
      return ProcessHandle.of(pid).isPresent(); // it is not there, or the kernel has no such file
    }
  }

  /// @param stat what the kernel says of the process; its name may have spaces and brackets
  static boolean mayRun(String stat) {
    List<String> words =
        SPACE
            .splitAsStream(stat.substring(Math.min(stat.length(), stat.lastIndexOf(')') + 2)))
            .toList();
    if (words.size() <= THREADS) {
      return true; // as far as can be said
    }
    boolean hasEnded = words.get(STATE).equals("Z") || words.get(STATE).equals("X");
    boolean isAlone = words.get(THREADS).equals("0") || words.get(THREADS).equals("1");
    return !(hasEnded && isAlone);
  }
}
