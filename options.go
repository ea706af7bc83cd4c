package cuda

import (
	"log/slog"
	"time"
)

// Option configures a Driver.
type Option func(*options)

type options struct {
	onPanic func(*PanicError)
	onLost  func(*LostError)
	logger  *slog.Logger

	maxHeld, taskStreams int
	watchdog             time.Duration
}

// OnPanic has fn told of panics of host functions that have no OnDone of their own. Without it they are logged. fn runs on an
// ordinary goroutine, where CUDA is allowed; a panic of its own is contained and logged (CONTRACT HL-09).
func OnPanic(fn func(*PanicError)) Option { return func(o *options) { o.onPanic = fn } }

// OnLost has fn told of host functions that will never run because their context failed, and that have no OnDone of their own.
// Without it they are logged. fn runs on an ordinary goroutine (CONTRACT HL-17).
func OnLost(fn func(*LostError)) Option { return func(o *options) { o.onLost = fn } }

// Logger has the driver log to l, rather than to slog.Default().
func Logger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// LoggerOf is the logger that opts choose. It is for the driver packages of this module.
func LoggerOf(opts ...Option) *slog.Logger {
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o.log()
}

func (o *options) log() *slog.Logger {
	if o.logger != nil {
		return o.logger
	}
	return slog.Default()
}

// MaxHeldStreams is how many streams of a device tasks may hold at once (CONTRACT TK-04). Without it, and for n below 1, it is 8, but one
// less than the hardware queues (CUDA_DEVICE_MAX_CONNECTIONS, which libcuda.Open sets to 32) if that is fewer: seven held streams
// of eight queues leave the others free, eight stop every stream of the process (measured on an H200). Streams that other
// libraries hold count for the hardware and not here.
func MaxHeldStreams(n int) Option { return func(o *options) { o.maxHeld = n } }

// TaskStreams is how many streams are made with the first task of a context, for NewStream to give out while streams are held
// (CONTRACT TK-03). Without it, and for n below 1, it is 32. As many as there may be held streams are kept for calls in tasks.
func TaskStreams(n int) Option { return func(o *options) { o.taskStreams = n } }
