package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.JoinException;
import org.comm4j.api.Secret;
import org.comm4j.core.session.LocalHost;
import org.jspecify.annotations.Nullable;

/// Where the ranks of an MPI job meet, on which they agree by MPI: on one host by a name, on
/// several at an address of rank 0's that all others have reached, with a secret that nobody else
/// gets.
///
/// All ranks call it at once, before they have a session. What a rank has begun with the others it
/// can't take back, and they would take its next for that. So it does so on a thread of its own,
/// which rests when the caller gives up and goes on for the next one.
final class MeetingPlace {
  private static final int NAME_BYTES = 16;
  private static final int TOKEN_BYTES = 16;
  private static final int SECRET_BYTES = 32;
  private static final long ALL = -1; // places, or none to look for

  /// What a caller has given up.
  private static final AtomicReference<@Nullable MeetingPlace> LEFT = new AtomicReference<>();

  private final CommConfig config;
  private final int rank;
  private final int size;
  private final FutureTask<Consumer<CommConfig.Builder>> finding = new FutureTask<>(this::inTurn);

  /// Who may call the library: this, or whoever has given up.
  private final Semaphore turn = new Semaphore(0, true);

  private MeetingPlace(CommConfig config) {
    this.config = config;
    this.rank = config.rank().orElse(0);
    this.size = config.worldSize().orElse(1);
  }

  /// What throws if the other ranks of the job are not to be waited for any longer: the thread is
  /// interrupted, or the time to join is over, which begins now.
  static Runnable patience(CommConfig config) {
    long sinceNs = System.nanoTime();
    return () -> checkPatience(config, sinceNs);
  }

  private static void checkPatience(CommConfig config, long sinceNs) {
    int rank = config.rank().orElse(0);
    if (Thread.currentThread().isInterrupted()) {
      throw new InterruptedCallException("joining the MPI job was interrupted on rank " + rank);
    }
    long waitedNs = System.nanoTime() - sinceNs;
    if (waitedNs >= config.joinTimeout().toNanos()) {
      throw new JoinException(
          JoinException.Reason.MISSING_RANKS,
          "rank %d waited %.1f s for others of the %d ranks of the MPI job, who have not opened their communicator; let all ranks open it, or raise COMM_JOIN_TIMEOUT if they may take longer"
              .formatted(rank, waitedNs / 1e9, config.worldSize().orElse(1)));
    }
  }

  /// {@return the configuration with what it lacks: the same on all ranks}
  ///
  /// @param config of this rank, which the library agrees with; an address, a port or a secret in
  ///   it is kept, and rank 0's name of a session holds for all
  /// @param patience throws if others are not to be waited for any longer; the next call goes on
  ///   with what was begun then, by the configuration of then
  /// @throws JoinException on all ranks, if the others reach no address of rank 0's
  static CommConfig find(CommConfig config, Runnable patience) {
    MeetingPlace left = LEFT.getAndSet(null);
    MeetingPlace place = left == null ? begin(config) : left;
    CommConfig.Builder found = config.toBuilder();
    place.await(patience).accept(found);
    Library.allCame();
    return found.build();
  }

  private static MeetingPlace begin(CommConfig config) {
    MeetingPlace place = new MeetingPlace(config);
    Thread.ofPlatform().daemon().name("comm4j-mpi-place").start(place.finding);
    return place;
  }

  private Consumer<CommConfig.Builder> await(Runnable patience) {
    turn.release();
    boolean isFound = false;
    try {
      Consumer<CommConfig.Builder> place = Worker.await(finding, patience);
      isFound = true;
      return place;
    } finally {
      if (!isFound && finding.state() != Future.State.FAILED) {
        turn.acquireUninterruptibly();
        LEFT.set(this);
        Library.markAbsent();
      }
    }
  }

  private Consumer<CommConfig.Builder> inTurn() {
    turn.acquireUninterruptibly();
    try {
      return find();
    } finally {
      turn.release();
    }
  }

  /// Lets who gives up have the library; goes on when somebody waits again.
  private void rest() {
    turn.release();
    turn.acquireUninterruptibly();
  }

  /// {@return what a configuration lacks}
  private Consumer<CommConfig.Builder> find() {
    String fresh = "mpi-" + HexFormat.of().formatHex(random(NAME_BYTES));
    String session = broadcastText(config.session().orElse(fresh)); // others may not have one
    Consumer<CommConfig.Builder> place = found -> found.session(session);
    checkAlike(allGather(new byte[] {has(hasSecret()), has(config.masterAddress().isPresent())}));
    List<String> hosts = hosts();
    boolean isOneHost = hosts.stream().distinct().count() == 1;
    if (isOneHost && config.masterAddress().isEmpty()) {
      // launchers may count otherwise
      return place.andThen(found -> found.localRank(rank).localWorldSize(size));
    }
    if (!hasSecret()) {
      byte[] bytes = random(SECRET_BYTES);
      Secret secret = Secret.of(bytes);
      Arrays.fill(bytes, (byte) 0);
      place = place.andThen(found -> found.secret(secret));
    }
    if (config.masterAddress().isEmpty()) {
      InetSocketAddress reached = reached(hosts, random(TOKEN_BYTES));
      String address = reached.getAddress().getHostAddress();
      place = place.andThen(found -> found.masterAddress(address).masterPort(reached.getPort()));
    }
    return place;
  }

  private boolean hasSecret() {
    return config.secret().isPresent() || config.secretFile().isPresent();
  }

  private static byte has(boolean isGiven) {
    return (byte) (isGiven ? 1 : 0);
  }

  /// What comes next is the same on all ranks only if they have been given the same. Some launchers
  /// don't give the environment to other hosts.
  ///
  /// @param given for each rank whether it has a secret, and an address
  static void checkAlike(List<byte[]> given) {
    for (int rank = 1; rank < given.size(); rank++) {
      for (int what = 0; what < 2; what++) {
        boolean isGiven = given.get(rank)[what] != 0;
        if (isGiven != (given.getFirst()[what] != 0)) {
          throw new JoinException(
              JoinException.Reason.CONFIGURATION,
              "%s is set on rank %d but not on rank %d; set it on all ranks (with Open MPI's mpirun -x) or on none"
                  .formatted(
                      what == 0 ? "COMM_SECRET_FILE or COMM_SECRET" : "COMM_MASTER_ADDR",
                      isGiven ? rank : 0,
                      isGiven ? 0 : rank));
        }
      }
    }
  }

  /// {@return for each rank something that is the same for ranks of one host only}
  private List<String> hosts() {
    byte[] mine;
    try {
      mine = MessageDigest.getInstance("SHA-256").digest(LocalHost.identity().id().getBytes(UTF_8));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e); // every JDK has it
    }
    return allGather(mine).stream().map(HexFormat.of()::formatHex).toList();
  }

  /// An address of rank 0's that all hosts have reached, at a port that was free there a moment
  /// ago.
  private InetSocketAddress reached(List<String> hosts, byte[] token) {
    InetSocketAddress reached = reachedBeacon(hosts, token);
    broadcast(new byte[1]); // who joins now finds the beacon out
    return reached;
  }

  private InetSocketAddress reachedBeacon(List<String> hosts, byte[] token) {
    byte[] given = ByteBuffer.allocate(Integer.BYTES).putInt(config.masterPort().orElse(0)).array();
    int port = ByteBuffer.wrap(broadcast(given)).getInt(); // other ranks may not have been given it
    try (Beacon beacon = rank == 0 ? Beacon.light(token, port) : Beacon.NONE) {
      List<InetSocketAddress> places = decode(broadcastText(encode(beacon.places())));
      boolean isOfRank0 = hosts.get(rank).equals(hosts.getFirst());
      boolean isFirstHere = hosts.indexOf(hosts.get(rank)) == rank;
      long seen = isOfRank0 || !isFirstHere ? ALL : Beacon.seen(places, token);
      List<Long> all =
          allGather(ByteBuffer.allocate(Long.BYTES).putLong(seen).array()).stream()
              .map(bytes -> ByteBuffer.wrap(bytes).getLong())
              .toList();
      long seenByAll = all.stream().reduce(ALL, (a, b) -> a & b);
      return IntStream.range(0, places.size())
          .filter(i -> (seenByAll >> i & 1) != 0)
          .mapToObj(places::get)
          .findFirst()
          .orElseThrow(() -> unreached(places, port, all));
    }
  }

  /// @param port at which alone rank 0 may listen; 0 for any
  /// @param seen for each rank a bit for each place that it reaches
  static JoinException unreached(List<InetSocketAddress> places, int port, List<Long> seen) {
    List<String> without = new ArrayList<>();
    for (int rank = 0; rank < seen.size(); rank++) {
      if (seen.get(rank) != ALL) {
        long mask = seen.get(rank);
        List<String> reached =
            IntStream.range(0, places.size())
                .filter(i -> (mask >> i & 1) != 0)
                .mapToObj(i -> places.get(i).getAddress().getHostAddress())
                .toList();
        without.add("rank %d reaches %s".formatted(rank, reached.isEmpty() ? "none" : reached));
      }
    }
    return new JoinException(
        JoinException.Reason.ADDRESS,
        "the ranks run on several hosts, and no address of rank 0's (%s) is reached by all of them: %s; set COMM_MASTER_ADDR and COMM_MASTER_PORT on all ranks to where they reach rank 0 over TCP"
            .formatted(
                places.isEmpty()
                    ? "it has none but loopback's"
                        + (port == 0 ? "" : " where COMM_MASTER_PORT, %d, is free".formatted(port))
                    : String.join(
                        ", ",
                        places.stream().map(each -> each.getAddress().getHostAddress()).toList()),
                String.join("; ", without)));
  }

  /// Without the interfaces that addresses of version 6 have here: others have other ones.
  static String encode(List<InetSocketAddress> places) {
    return places.stream()
        .map(each ->
            each.getAddress().getHostAddress().replaceFirst("%.*", "") + " " + each.getPort())
        .collect(Collectors.joining("\n"));
  }

  static List<InetSocketAddress> decode(String text) {
    return text.lines().map(MeetingPlace::decodeOne).toList();
  }

  private static InetSocketAddress decodeOne(String line) {
    String[] parts = line.split(" ", 2);
    try {
      return new InetSocketAddress(InetAddress.getByName(parts[0]), Integer.parseInt(parts[1]));
    } catch (IOException e) {
      throw new IllegalStateException(line, e); // it is no name
    }
  }

  // --- by MPI ---

  /// {@return random bytes, the same on all ranks}
  private byte[] random(int count) {
    byte[] random = new byte[count];
    new SecureRandom().nextBytes(random);
    return broadcast(random);
  }

  private String broadcastText(String text) {
    byte[] bytes = text.getBytes(UTF_8);
    byte[] length = broadcast(ByteBuffer.allocate(Integer.BYTES).putInt(bytes.length).array());
    return new String(broadcast(Arrays.copyOf(bytes, ByteBuffer.wrap(length).getInt())), UTF_8);
  }

  /// {@return what rank 0 has given}
  private byte[] broadcast(byte[] bytes) {
    Constants constants = Functions.constants();
    MemorySegment data = Arena.ofAuto().allocateFrom(JAVA_BYTE, bytes);
    Requests request = new Requests(1);
    Errors.check(
        MpiCollectives.startBroadcast(
            data, bytes.length, constants.byteType, 0, constants.commWorld, request.next()),
        "MPI_Ibcast");
    Comms.await(request, this::rest, data);
    return data.toArray(JAVA_BYTE);
  }

  /// {@return what each rank has given, as many bytes as this one}
  private List<byte[]> allGather(byte[] bytes) {
    Constants constants = Functions.constants();
    MemorySegment own = Arena.ofAuto().allocateFrom(JAVA_BYTE, bytes);
    MemorySegment all = Arena.ofAuto().allocate((long) size * bytes.length);
    Requests request = new Requests(1);
    Errors.check(
        MpiCollectives.startAllGather(
            own, all, bytes.length, constants.byteType, constants.commWorld, request.next()),
        "MPI_Iallgather");
    Comms.await(request, this::rest, own, all);
    return Stream.iterate(0L, at -> at + bytes.length)
        .limit(size)
        .map(at -> all.asSlice(at, bytes.length).toArray(JAVA_BYTE))
        .toList();
  }
}
