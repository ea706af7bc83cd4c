package driver

// Flags of contexts: how a thread waits that waits for the context (CU_CTX_SCHED_*).
const (
	CtxSchedAuto         uint32 = 0
	CtxSchedSpin         uint32 = 1
	CtxSchedYield        uint32 = 2
	CtxSchedBlockingSync uint32 = 4
)

// OwnContexts are contexts beside the primary ones, of the context management section.
type OwnContexts interface {
	// CtxCreate makes a context. What is current on the calling thread stays so.
	CtxCreate(flags uint32, d Device) (Context, Result)
	// CtxDestroy destroys a context that CtxCreate made, with all that is in it.
	CtxDestroy(Context) Result
}
