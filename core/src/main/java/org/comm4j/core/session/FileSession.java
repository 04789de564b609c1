package org.comm4j.core.session;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.spi.Session.Failure;
import org.comm4j.core.session.FrameCodec.ProtocolException;
import org.jspecify.annotations.Nullable;

/// A session of processes of one host without a port: the history is a file. Ranks append to it in
/// turns and all read it, so it has one order without anyone who keeps it, and no rank is special.
///
///     0          magic, format, id, end of the log
///     4096       a heartbeat counter for each rank; negative from when its session has failed
///     LOG        the frames: joins first, then events; or that the group has been given up
///     LOCKS      (no data) the turn, and a lock for each rank ([LogFile])
///
/// An entry counts when the end of the log has moved behind it, so one whose writer died is
/// overwritten by the next. Deaths: ranks look at each other's locks, and whoever finds one free
/// tells the others, in the log; silence shows in the heartbeats, and so does who lives but can't
/// go on: it need not write for that. The file is removed by the last rank that leaves. If all are
/// killed it stays, and the next session of this user removes it, since nobody holds a lock on it.
///
/// One daemon thread per rank does everything: an interrupted thread of the user's would close the
/// file. It looks every millisecond while somebody waits, else fifty times a second.
final class FileSession implements ReplicatedSession.History {
  static final String ENDING = ".session";
  static final long MAGIC = FrameCodec.MAGIC;
  private static final long FORMAT_AT = 8;
  private static final long ID_AT = 16;
  private static final int ID_BYTES = 16;
  private static final long END_AT = 32;
  private static final long HEARTBEATS = 4096;
  private static final long LOG = HEARTBEATS + Long.BYTES * (long) FrameCodec.MAX_RANKS;
  private static final String NO_SPACE = "No space left on device"; // in the system's words
  private static final long FAILED = Long.MIN_VALUE; // a heartbeat
  private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

  private static final long FAST_NS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long SLOW_NS = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long LAST_TURN_NS = TimeUnit.SECONDS.toNanos(1);
  private static final long CLOSE_NS = TimeUnit.MILLISECONDS.toNanos(500);

  private final Path directory;
  private final Path path;
  private final JoinRequest request;
  private final LongSupplier nanoTime;
  private final IntConsumer halt;
  private final long livenessNs;
  private final Thread thread;
  private final CompletableFuture<ReplicatedSession> joined = new CompletableFuture<>();
  private final Queue<Event> outgoing = new ConcurrentLinkedQueue<>();
  private volatile boolean closing;

  // The rest is the thread's own.
  private final BitSet gone = new BitSet();
  private Roster roster = new Roster(Optional.empty(), OptionalInt.empty());
  private @Nullable LogFile file;
  private @Nullable Arena arena;
  private MemorySegment header = MemorySegment.NULL;
  private long readTo = LOG;
  private boolean hasMadeDirectory;
  private boolean admitted;
  private boolean failed;
  private @Nullable JoinException givenUp;
  private @Nullable ReplicatedSession session;
  private long startNs;
  private long beatNs;
  private long[] beats = new long[0];
  private long[] heardNs = new long[0];
  private int probe;

  private FileSession(
      Path directory, JoinRequest request, LongSupplier nanoTime, IntConsumer halt) {
    this.directory = directory;
    this.path = directory.resolve(fileName(request.job()));
    this.request = request;
    this.nanoTime = nanoTime;
    this.halt = halt;
    this.livenessNs = TimeUnit.MILLISECONDS.toNanos(request.livenessMillis());
    this.thread =
        Thread.ofPlatform()
            .name("comm4j-session-" + request.rank())
            .daemon()
            .inheritInheritableThreadLocals(false)
            .unstarted(this::run);
  }

  /// Starts to join.
  ///
  /// @param directory of this user alone; made if it is not there
  static FileSession start(
      Path directory, JoinRequest request, LongSupplier nanoTime, IntConsumer halt) {
    var session = new FileSession(directory, request, nanoTime, halt);
    session.thread.start();
    return session;
  }

  /// A job's name where it makes a plain file name, else something that stands for it.
  private static String fileName(String job) {
    String plain =
        job.matches("[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
            ? job
            : "job-" + UUID.nameUUIDFromBytes(job.getBytes(StandardCharsets.UTF_8));
    return plain + ENDING;
  }

  /// The session, once all are there; fails with a [JoinException].
  CompletableFuture<ReplicatedSession> joined() {
    return joined;
  }

  @Override
  public void append(Event event) {
    outgoing.add(event);
    LockSupport.unpark(thread);
  }

  @Override
  public void close() {
    closing = true;
    LockSupport.unpark(thread);
    Endings.await(thread, CLOSE_NS);
  }

  private void run() {
    Throwable trouble = null;
    try {
      startNs = nanoTime.getAsLong();
      join();
      if (session != null) {
        serve();
      }
    } catch (IOException | ProtocolException | RuntimeException | Error e) {
      trouble = e; // no more: there may be no memory for words
      showFailure(e);
    }
    boolean isOver = false;
    while (!isOver) {
      try {
        end(trouble);
        isOver = true;
      } catch (OutOfMemoryError e) {
        Endings.awaitMemory();
      }
    }
  }

  /// Lets the others know first, by the lock, then this rank. May be repeated.
  private void end(@Nullable Throwable trouble) {
    leave(!(trouble instanceof LockedException)); // another wait for the turn would be in vain
    if (trouble != null) {
      tell(trouble);
    }
    if (failed && session == null && hasMadeDirectory) {
      removeDirectory();
    }
  }

  /// If nothing is in it. Others make it again.
  private void removeDirectory() {
    try {
      Files.deleteIfExists(directory);
    } catch (IOException e) {
      // it is in use, or will be swept
    }
  }

  private void tell(Throwable trouble) {
    switch (trouble) {
      case JoinException e -> joined.completeExceptionally(e);
      case LockedException e ->
          fail(
              "the session's file %s is locked by %s, which does not run; continue that process, or end it"
                  .formatted(path, e.getMessage()),
              e);
      case IOException e -> fail(unusable("file " + path, e), e);
      case UnsupportedOperationException e -> fail(unusable("file " + path, e), e);
      case ProtocolException e ->
          fail(
              "what is in the session's file %s is not ours: %s; give the launch another COMM_SESSION"
                  .formatted(path, e.getMessage()),
              e);
      default ->
          fail("the session's thread failed: " + trouble + OpenFiles.remedy(trouble), trouble);
    }
  }

  /// Sees whether a session's file can be in a directory, as far as that tells. One that is not
  /// there is made by the first rank.
  ///
  /// @throws JoinException if it can't
  static void checkCanBeIn(Path directory) {
    try {
      if (Files.exists(directory, LinkOption.NOFOLLOW_LINKS)) {
        LogFile.checkDirectory(directory);
      } else {
        checkCanBeMade(directory);
      }
    } catch (IOException | UnsupportedOperationException e) {
      throw new JoinException(Reason.ADDRESS, unusable("directory " + directory, e), e);
    }
  }

  private static void checkCanBeMade(Path directory) throws IOException {
    Path parent = directory.toAbsolutePath().getParent();
    if (parent == null || (Files.isDirectory(parent) && Files.isWritable(parent))) {
      return;
    }
    throw Files.exists(parent)
        ? new AccessDeniedException(parent.toString())
        : new NoSuchFileException(parent.toString());
  }

  private static String unusable(String place, Exception e) {
    if (String.valueOf(e.getMessage()).contains(NO_SPACE)) {
      return "can't meet in the %s: %s; free space there, make it larger (with Docker --shm-size), or set %s to a directory on another file system"
          .formatted(place, NO_SPACE, DefaultSessionFactory.DIRECTORY);
    }
    return "can't meet in the %s: %s; set %s to a directory of this user alone, which is made if it is not there%s"
        .formatted(place, problem(e), DefaultSessionFactory.DIRECTORY, OpenFiles.remedy(e));
  }

  /// Most exceptions of the file system say nothing but a path.
  private static String problem(Exception e) {
    return switch (e) {
      case NoSuchFileException _ -> e.getMessage() + " does not exist";
      case AccessDeniedException _ -> "this user may not use " + e.getMessage();
      default -> String.valueOf(e.getMessage());
    };
  }

  private void fail(String why, Throwable cause) {
    Reason reason = cause instanceof ProtocolException ? Reason.PROTOCOL : Reason.ADDRESS;
    joined.completeExceptionally(new JoinException(reason, why, cause));
    ReplicatedSession session = this.session;
    if (session != null) {
      session.evict(why);
      session.tellNews();
    }
  }

  // --- Joining ---

  private void join() throws IOException, ProtocolException {
    boolean isLast = false; // try: this process may have been stopped
    while (!attach()) {
      if (closing || isLast) {
        throw new JoinException(
            Reason.ADDRESS,
            "rank %d could not join at %s within %s: the session before this one has not ended"
                .formatted(request.rank(), path, ReplicatedSession.seconds(waitedNs())));
      }
      detach();
      isLast = waitedNs() > patienceNs();
      LockSupport.parkNanos(SLOW_NS / 4);
    }
    while (session == null) {
      LockSupport.parkNanos(FAST_NS);
      beat(nanoTime.getAsLong());
      poll();
      if (session == null && (closing || waitedNs() > patienceNs() || isNextDead())) {
        inTurn(this::giveUp);
      }
    }
  }

  private long waitedNs() {
    return nanoTime.getAsLong() - startNs;
  }

  private long patienceNs() {
    return TimeUnit.MILLISECONDS.toNanos(request.patienceMillis());
  }

  /// The directory is that of all this user's jobs: who looks after them removes it when it is
  /// empty ([SessionFiles#sweep]), also between our two looks.
  private @Nullable LogFile open() throws IOException {
    try {
      hasMadeDirectory |= LogFile.requireDirectory(directory);
      return LogFile.open(path);
    } catch (NoSuchFileException e) {
      Path parent = directory.toAbsolutePath().getParent();
      if (parent == null || Files.isDirectory(parent)) {
        return null;
      }
      throw e;
    }
  }

  /// @return whether this rank is in; else it tries again
  private boolean attach() throws IOException, ProtocolException {
    LogFile opened = open();
    if (opened == null) {
      return false;
    }
    file = opened;
    if (!opened.tryTurn()) {
      return false;
    }
    try {
      return opened.isLinked() && attachInTurn(opened);
    } finally {
      opened.endTurn();
    }
  }

  private boolean attachInTurn(LogFile file) throws IOException, ProtocolException {
    boolean fresh = file.channel().size() < LOG;
    if (fresh) {
      try {
        initialise(file);
      } catch (IOException e) {
        file.unlink(); // who waits for the turn makes another
        throw e;
      }
    }
    map(file);
    if (header.get(ValueLayout.JAVA_LONG, 0) != MAGIC) {
      throw new ProtocolException("it has another magic number");
    }
    int format = header.get(ValueLayout.JAVA_INT, FORMAT_AT);
    if (format != FrameCodec.PROTOCOL) {
      throw new JoinException(
          Reason.VERSION,
          "the session in %s has format %d, this rank %d; use the same comm4j on all ranks"
              .formatted(path, format, FrameCodec.PROTOCOL));
    }
    if (!fresh && !file.isAnyoneAlive()) {
      file.unlink();
      return false;
    }
    if (Meetings.ofThisProcess().count(id(), request.rank()) > 0) {
      return false;
    }
    poll();
    admit(file);
    if (fresh) {
      LogFile.reap(directory, ENDING);
    }
    return true;
  }

  /// Writes what will be mapped, so that there is memory behind it: a full file system shows here.
  private static void initialise(LogFile file) throws IOException {
    ByteBuffer start = ByteBuffer.allocate((int) LOG).order(ByteOrder.nativeOrder());
    start.putLong(0, MAGIC).putInt((int) FORMAT_AT, FrameCodec.PROTOCOL);
    start.put((int) ID_AT, HexFormat.of().parseHex(InMemorySessions.randomId()));
    start.putLong((int) END_AT, LOG);
    file.write(start, 0);
  }

  private void map(LogFile file) throws IOException {
    Arena mapping = Arena.ofConfined();
    arena = mapping;
    header = file.channel().map(FileChannel.MapMode.READ_WRITE, 0, LOG, mapping);
    readTo = LOG;
    roster = new Roster(Optional.empty(), OptionalInt.empty());
    gone.clear();
    givenUp = null;
  }

  private String id() {
    return HexFormat.of().formatHex(header.asSlice(ID_AT, ID_BYTES).toArray(ValueLayout.JAVA_BYTE));
  }

  private void admit(LogFile file) throws IOException {
    JoinException why = givenUp;
    if (why != null) {
      boolean late = why.reason() == Reason.MISSING_RANKS;
      throw new JoinException(
          late ? Reason.LATE : why.reason(),
          (late ? "the group has given up: " : "") + why.getMessage());
    }
    switch (roster.admit(request, this::isAliveOrUnknown)) {
      case Roster.Verdict.Admitted _ -> {
        if (!file.lockRank(request.rank())) {
          throw new IOException("the lock of rank " + request.rank() + " is taken");
        }
        admitted = true;
        LONG.setRelease(header, beatAt(), 0L); // one of this number may have failed here before
        write(new Frame.Join(request));
      }
      case Roster.Verdict.Refused no -> throw new JoinException(no.reason(), no.message());
      case Roster.Verdict.Broken broken -> {
        write(new Frame.Refused(broken.reason(), broken.message()));
        throw new JoinException(broken.reason(), broken.message());
      }
    }
    // It is read again with the rest, by a roster that has not seen it.
    roster = new Roster(Optional.empty(), OptionalInt.empty());
    readTo = LOG;
    gone.clear();
  }

  private boolean isAliveOrUnknown(int rank) {
    try {
      return isAlive(rank);
    } catch (IOException e) {
      return true;
    }
  }

  /// Gives the group up for all, unless it has formed meanwhile.
  private void giveUp() throws IOException, ProtocolException {
    poll();
    if (session != null) {
      return;
    }
    write(whyGivenUp());
    poll();
  }

  private Frame.Refused whyGivenUp() throws IOException {
    int dead = findDead();
    if (dead >= 0) {
      return new Frame.Refused(
          Reason.PEER_FAILED,
          "rank %d died before all had joined: %s".formatted(dead, released(dead)));
    }
    if (closing && waitedNs() <= patienceNs()) { // the others are not late
      return new Frame.Refused(Reason.PEER_FAILED, Roster.closed(request.rank()));
    }
    return new Frame.Refused(Reason.MISSING_RANKS, roster.missing(waitedNs()));
  }

  /// A rank that has joined and is dead, or -1.
  private int findDead() throws IOException {
    for (int rank : roster.ranks()) {
      if (!isAlive(rank)) {
        return rank;
      }
    }
    return -1;
  }

  /// Looks at one rank that has joined, at each call at the next: a look at all of them by all of
  /// them takes more than a processor where there are many.
  private boolean isNextDead() throws IOException {
    probe = (probe + 1) % request.worldSize();
    return roster.ranks().contains(probe) && !isAlive(probe);
  }

  private void form() {
    Meetings.ofThisProcess().add(id(), request.rank());
    int size = request.worldSize();
    beats = new long[size];
    heardNs = new long[size];
    forgive(nanoTime.getAsLong());
    var formed =
        new ReplicatedSession(request.rank(), id(), roster.members(), this, nanoTime, halt);
    session = formed;
    joined.complete(formed);
  }

  // --- The log ---

  private interface Turn {
    void run() throws IOException, ProtocolException;
  }

  /// Does something while nobody else appends. A turn takes microseconds, and ends when its process
  /// does; only a process that was stopped in it can hold it up.
  private void inTurn(Turn action) throws IOException, ProtocolException {
    LogFile file = file();
    long start = nanoTime.getAsLong();
    long[] before = null;
    boolean isLast = false; // that one, or this one, may only have been stopped for a while
    while (!file.tryTurn()) {
      if (before == null) {
        before = beats();
      }
      if (isLast) {
        throw new LockedException(whoIsStill(before));
      }
      long now = nanoTime.getAsLong();
      beat(now);
      isLast = now - start > (closing ? LAST_TURN_NS : 2 * livenessNs);
      LockSupport.parkNanos(FAST_NS / 10);
    }
    try {
      action.run();
    } finally {
      file.endTurn();
    }
  }

  /// A process was stopped in its turn.
  private static final class LockedException extends IOException {
    private static final long serialVersionUID = 1L;

    LockedException(String who) {
      super(who);
    }
  }

  /// Names those who have not shown that they are alive since.
  ///
  /// @param before what [#beats()] was
  private String whoIsStill(long[] before) {
    String still =
        roster.ranks().stream()
            .filter(rank -> rank != request.rank() && !gone.get(rank))
            .filter(rank -> beat(rank) == before[rank])
            .map(rank -> "rank %d (%s)".formatted(rank, roster.who(rank)))
            .collect(Collectors.joining(" or "));
    return still.isEmpty() ? "a process" : still;
  }

  private long[] beats() {
    return IntStream.range(0, request.worldSize()).mapToLong(this::beat).toArray();
  }

  /// Appends; only in the own turn.
  private void write(Frame frame) throws IOException {
    ByteBuffer bytes = FrameCodec.encode(frame);
    long end = end();
    long next = end + bytes.remaining();
    file().write(bytes, end);
    LONG.setRelease(header, END_AT, next);
  }

  private long end() {
    return (long) LONG.getAcquire(header, END_AT);
  }

  /// Takes in what has been appended.
  private void poll() throws IOException, ProtocolException {
    long end = end();
    boolean isNews = false;
    while (readTo < end) {
      var length = ByteBuffer.allocate(Integer.BYTES);
      file().read(length, readTo);
      int bytes = length.getInt(0);
      if (bytes < 1 || bytes > FrameCodec.MAX_FRAME_BYTES) {
        throw new ProtocolException("a frame of %d bytes".formatted(bytes));
      }
      var frame = ByteBuffer.allocate(bytes);
      file().read(frame, readTo + Integer.BYTES);
      readTo += Integer.BYTES + (long) bytes;
      isNews |= take(FrameCodec.decode(frame.flip()));
    }
    ReplicatedSession session = this.session;
    if (isNews && session != null) {
      session.tellNews();
    }
  }

  private boolean take(Frame frame) {
    ReplicatedSession session = this.session;
    switch (frame) {
      case Frame.Join join -> {
        Roster.Verdict _ = roster.admit(join.request(), _ -> true);
        if (roster.isComplete() && isIn() && this.session == null) {
          form();
        }
        return false;
      }
      case Frame.Refused refused -> {
        givenUp = new JoinException(refused.reason(), refused.message());
        if (isIn()) {
          Meetings.ofThisProcess().add(id(), request.rank());
          throw givenUp;
        }
        return false;
      }
      case Event event -> {
        if (event instanceof Event.Fail || event instanceof Event.Leave) {
          gone.set(event.rank());
        }
        return session != null && session.deliver(event);
      }
      case Frame.Control _ -> {
        return false;
      }
    }
  }

  /// Whether this rank is one of those whose joins have been read.
  private boolean isIn() {
    return admitted && roster.ranks().contains(request.rank());
  }

  private LogFile file() {
    return Objects.requireNonNull(file);
  }

  // --- The session ---

  private void serve() throws IOException, ProtocolException {
    long last = nanoTime.getAsLong();
    long busyNs = last;
    while (!closing) {
      if (!outgoing.isEmpty()) {
        inTurn(this::writeOutgoing);
      }
      long before = readTo;
      poll();
      long now = nanoTime.getAsLong();
      if (now - last > livenessNs / 4) {
        forgive(now); // This process was stopped: what others did meanwhile it could not see.
      }
      last = now;
      if (readTo != before) {
        busyNs = now;
      }
      beat(now);
      watch(now);
      boolean fast = now - busyNs < SLOW_NS || waiters() > 0;
      if (outgoing.isEmpty() && !closing) {
        LockSupport.parkNanos(Math.min(fast ? FAST_NS : SLOW_NS, livenessNs / 16));
      }
    }
    // What was handed in before the close goes out before the goodbye.
    inTurn(this::writeOutgoing);
  }

  private int waiters() {
    ReplicatedSession session = this.session;
    return session == null ? 0 : session.waiters();
  }

  private void writeOutgoing() throws IOException {
    for (Event event = outgoing.poll(); event != null; event = outgoing.poll()) {
      write(event);
    }
  }

  private void beat(long now) {
    if (now - beatNs > livenessNs / 8 || beatNs == 0) {
      beatNs = now;
      long at = beatAt();
      LONG.setRelease(header, at, (long) LONG.getAcquire(header, at) + 1);
    }
  }

  private long beatAt() {
    return HEARTBEATS + Long.BYTES * (long) request.rank();
  }

  /// Says that the process may live when the lock is free. Needs no memory.
  private void showFailure(Throwable trouble) {
    failed = !(trouble instanceof JoinException);
    if (failed && session != null) {
      LONG.setRelease(header, beatAt(), FAILED);
    }
  }

  /// How often a rank has shown that it is alive.
  private long beat(int rank) {
    return (long) LONG.getAcquire(header, HEARTBEATS + Long.BYTES * (long) rank);
  }

  private void forgive(long now) {
    Arrays.fill(heardNs, now);
  }

  /// Looks for deaths: at the next rank and at one more at each turn of the loop.
  private void watch(long now) throws IOException, ProtocolException {
    int size = request.worldSize();
    int next = request.rank();
    do {
      next = (next + 1) % size;
    } while (gone.get(next) && next != request.rank());
    probe = (probe + 1) % size;
    for (int rank : new int[] {next, probe}) {
      if (rank != request.rank() && !gone.get(rank) && !isAlive(rank)) {
        tell(rank, released(rank));
      }
    }
    for (int rank = 0; rank < size; rank++) {
      long beat = beat(rank);
      if (beat != beats[rank]) {
        beats[rank] = beat;
        heardNs[rank] = now;
      } else if (now - heardNs[rank] > livenessNs && rank != request.rank() && !gone.get(rank)) {
        tell(
            rank,
            "%s%s (%s)"
                .formatted(
                    Failure.SILENT,
                    ReplicatedSession.seconds(now - heardNs[rank]),
                    roster.who(rank)));
      }
    }
  }

  /// Tells everyone that a rank is gone, unless it or another one has said so before.
  private void tell(int rank, String evidence) throws IOException, ProtocolException {
    inTurn(() -> {
      poll();
      if (!gone.get(rank)) {
        write(new Event.Fail(rank, evidence, null));
      }
    });
    poll();
  }

  private String released(int rank) {
    String how =
        beat(rank) < 0
            ? Failure.CUT_OFF + "; it says itself why"
            : "its process ended: the kernel has released its lock";
    return "%s (%s)".formatted(how, roster.who(rank));
  }

  private boolean isAlive(int rank) throws IOException {
    return file().isAlive(rank);
  }

  // --- Leaving ---

  /// @param mayHaveTurn whether the file's turn can be had
  private void leave(boolean mayHaveTurn) {
    try {
      if (!mayHaveTurn) {
        // the others find the lock free
      } else if (file != null && session != null && !failed) {
        inTurn(this::leaveInTurn);
      } else if (file != null && admitted) {
        inTurn(this::giveWayInTurn);
      }
    } catch (IOException | ProtocolException | RuntimeException e) {
      // The others find the lock free.
    } finally {
      if (file != null) {
        try {
          if (admitted) {
            file.unlockRank(request.rank());
          }
        } catch (IOException e) {
          // Closing the file gives it up as well.
        }
      }
      detach();
    }
  }

  private void leaveInTurn() throws IOException, ProtocolException {
    poll();
    if (!gone.get(request.rank())) {
      write(new Event.Leave(request.rank()));
    }
    unlinkIfLast();
  }

  /// Who has not been in the session, or can't follow it, says no goodbye: the next one goes by the
  /// lock.
  private void giveWayInTurn() throws IOException {
    file().unlockRank(request.rank());
    unlinkIfLast();
  }

  private void unlinkIfLast() throws IOException {
    for (int rank : roster.ranks()) {
      if (rank != request.rank() && !gone.get(rank) && isAlive(rank)) {
        return;
      }
    }
    file().unlink();
  }

  private void detach() {
    Arena mapping = arena;
    arena = null;
    header = MemorySegment.NULL;
    if (mapping != null) {
      mapping.close();
    }
    LogFile file = this.file;
    this.file = null;
    if (file != null) {
      file.close();
    }
  }

  /// The directory of this user's sessions where nothing else is configured.
  static Path defaultDirectory() {
    Path shared = Path.of("/dev/shm");
    if (!Files.isDirectory(shared)) {
      throw new JoinException(
          Reason.ADDRESS,
          "there is no /dev/shm; set COMM_SESSION_DIR to a directory that all ranks share, or"
              + " COMM_MASTER_ADDR and COMM_MASTER_PORT");
    }
    try {
      return shared.resolve("comm4j-" + LocalHost.uid());
    } catch (IOException e) {
      throw new JoinException(Reason.ADDRESS, "this user's id is unknown: " + e.getMessage(), e);
    }
  }
}
