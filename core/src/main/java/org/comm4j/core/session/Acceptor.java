package org.comm4j.core.session;

import java.io.Closeable;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.ObjLongConsumer;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.jspecify.annotations.Nullable;

/// The port at which a [SessionServer] listens, and what to say where that is of no use. For the
/// thread of the selector, but for [#port()].
///
/// A process that is out of descriptors accepts nobody, and to try at once again would spin. So
/// whoever connects waits: it is tried every 100 ms, logged once, and reported after a second.
final class Acceptor {
  private static final int MOST_WAITING = 512;
  private static final long PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(100);

  /// How long no connection can be accepted before that is reported.
  private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(1);

  private final ServerSocketChannel channel;
  private final SelectionKey key;
  private final ObjLongConsumer<SocketChannel> guests;
  private final Consumer<String> log;
  private final Trouble trouble = new Trouble();
  private boolean isLogged;
  private long againNs; // when a pause ends; 0 if there is none

  private Acceptor(
      ServerSocketChannel channel,
      SelectionKey key,
      ObjLongConsumer<SocketChannel> guests,
      Consumer<String> log) {
    this.channel = channel;
    this.key = key;
    this.guests = guests;
    this.log = log;
  }

  /// Opens a selector and listens: at exactly this place, and as the last thing that it does.
  ///
  /// @param guests takes each connection, which it closes, and the time
  /// @param log takes a line for whoever runs this
  /// @throws JoinException if that can't be (`ADDRESS`)
  static Acceptor listen(
      InetSocketAddress place, ObjLongConsumer<SocketChannel> guests, Consumer<String> log) {
    Selector selector = null;
    ServerSocketChannel channel = null;
    try {
      selector = Selector.open();
      channel = ServerSocketChannel.open();
      channel.setOption(StandardSocketOptions.SO_REUSEADDR, true);
      channel.configureBlocking(false);
      SelectionKey key = channel.register(selector, SelectionKey.OP_ACCEPT);
      var acceptor = new Acceptor(channel, key, guests, log);
      channel.bind(place, MOST_WAITING);
      return acceptor;
    } catch (IOException e) {
      closeQuietly(selector);
      closeQuietly(channel);
      InetAddress address = place.getAddress();
      throw new JoinException(
          Reason.ADDRESS,
          "can't listen on %s port %d: %s%s%s"
              .formatted(
                  address.getHostAddress(),
                  place.getPort(),
                  e.getMessage(),
                  hint(e, address),
                  OpenFiles.remedy(e)),
          e);
    }
  }

  /// @param failure in the language of the user's system
  static String hint(IOException failure, InetAddress address) {
    if (!(failure instanceof BindException)) {
      return "";
    }
    return LocalHost.has(address)
        ? "; choose another COMM_MASTER_PORT"
        : "; it is no address of this host: rank 0, or node 0, must run where COMM_MASTER_ADDR is";
  }

  /// What its thread waits with; the caller closes it.
  Selector selector() {
    return key.selector();
  }

  /// The port that it listens on, or did. Callable from any thread.
  int port() {
    return channel.socket().getLocalPort();
  }

  boolean isOpen() {
    return channel.isOpen();
  }

  /// Whether the selector has seen that somebody waits.
  boolean isSelected() {
    return selector().selectedKeys().contains(key);
  }

  /// Lets in who waits, a few at a time: whoever connects without end holds up nobody.
  ///
  /// @return why nobody could be let in for a second, for [#text]; null if that is not so
  @Nullable IOException accept(long now) {
    try {
      for (int i = 0; i < PendingConnections.PLACES; i++) {
        SocketChannel guest = channel.accept();
        trouble.end();
        if (guest == null) {
          return null;
        }
        guests.accept(guest, now);
      }
      return null;
    } catch (IOException e) { // out of descriptors, most likely
      return pause(e, now) ? e : null;
    }
  }

  /// @return whether it is to be reported
  private boolean pause(IOException e, long now) {
    key.interestOps(0);
    againNs = now + PAUSE_NS;
    if (!isLogged) {
      isLogged = true;
      log.accept(text(e));
    }
    return trouble.lasts(now);
  }

  /// For how long nobody can be let in.
  static final class Trouble {
    private boolean isThere;
    private long sinceNs;
    private long lastNs;

    /// Somebody could be.
    void end() {
      isThere = false;
    }

    /// Nobody could be.
    ///
    /// @return whether it has been so for a second
    boolean lasts(long now) {
      if (!isThere || now - lastNs > PATIENCE_NS) {
        sinceNs = now; // it is not what was the trouble before
      }
      isThere = true;
      lastNs = now;
      return now - sinceNs >= PATIENCE_NS;
    }
  }

  /// Says what [#accept] has returned.
  static String text(IOException e) {
    return "can't accept a connection: %s%s".formatted(e.getMessage(), OpenFiles.remedy(e));
  }

  /// Ends a pause that is over.
  void endPause(long now) {
    if (againNs != 0 && now - againNs >= 0 && key.isValid()) {
      againNs = 0;
      key.interestOps(SelectionKey.OP_ACCEPT);
    }
  }

  /// Listens no more; another one may do so at the same place.
  void close() {
    closeQuietly(channel);
  }

  static void closeQuietly(@Nullable Closeable resource) {
    try {
      if (resource != null) {
        resource.close();
      }
    } catch (IOException e) {
      // Its descriptor is freed all the same.
    }
  }
}
