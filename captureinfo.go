package cuda

import "github.com/hostlaunch/cuda/internal/driver"

// CaptureStatus is whether a stream is capturing.
type CaptureStatus int32

// Capture states, by the driver's numbers.
const (
	// CaptureNone: the stream is not capturing.
	CaptureNone CaptureStatus = CaptureStatus(driver.CaptureNone)
	// CaptureActive: what is queued on the stream becomes part of a graph.
	CaptureActive CaptureStatus = CaptureStatus(driver.CaptureActive)
	// CaptureInvalidated: a call spoiled the capture, which must still be ended.
	CaptureInvalidated CaptureStatus = CaptureStatus(driver.CaptureInvalidated)
)

// String gives the state's name.
func (s CaptureStatus) String() string {
	switch s {
	case CaptureNone:
		return "none"
	case CaptureActive:
		return "active"
	case CaptureInvalidated:
		return "invalidated"
	}
	return "unknown"
}

// EdgeData says how an edge of a graph orders its two nodes. The zero EdgeData, which is the usual one, is a whole dependency:
// the later node begins when the earlier is done. The numbers are the driver's (CUgraphEdgeData).
type EdgeData struct{ FromPort, ToPort, Type uint8 }

func (e EdgeData) raw() driver.EdgeData {
	return driver.EdgeData{FromPort: e.FromPort, ToPort: e.ToPort, Type: e.Type}
}

func publicEdge(e driver.EdgeData) EdgeData { return EdgeData{e.FromPort, e.ToPort, e.Type} }

// CaptureInfo tells of a stream's capture. Only Status means something unless that is CaptureActive.
type CaptureInfo struct {
	Status CaptureStatus
	ID     uint64  // unique to the capture
	Graph  uintptr // the driver's handle (a CUgraph) of the graph being built, for other libraries; it is the capture's
	// Dependencies are the nodes that the next one queued on the stream will depend on, each with its edge.
	Dependencies []CaptureDependency
}

// CaptureDependency is a node that the next one captured depends on.
type CaptureDependency struct {
	Node GraphNode
	Edge EdgeData
}

// CaptureStatus says whether s is capturing. The capture may be another library's. On the legacy default stream, while a
// blocking stream captures, it is ErrCaptureImplicit, and that capture is not harmed (CONTRACT CP-06). cuStreamIsCapturing.
func (s *Stream) CaptureStatus() (CaptureStatus, error) {
	st, err := streamValue(s, "Stream.CaptureStatus", driver.Driver.StreamIsCapturing)
	return CaptureStatus(st), err
}

// CaptureInfo tells of s's capture (CONTRACT CP-07). Needs CUDA 12.3, or it is ErrNotSupported. cuStreamGetCaptureInfo.
func (s *Stream) CaptureInfo() (CaptureInfo, error) {
	const op = "Stream.CaptureInfo"
	if err := s.begin(op); err != nil {
		return CaptureInfo{}, err
	}
	defer s.end()
	return s.captureInfo(op)
}

func (s *Stream) captureInfo(op string) (CaptureInfo, error) {
	raw, r := s.driver().StreamGetCaptureInfo(s.ctx.raw, s.raw)
	if r != driver.Success {
		return CaptureInfo{}, s.captureResult(op, r, "cuStreamGetCaptureInfo")
	}
	info := CaptureInfo{Status: CaptureStatus(raw.Status), ID: raw.ID, Graph: uintptr(raw.Graph)}
	if raw.Status != driver.CaptureActive {
		return info, nil
	}
	for i, n := range s.capturedNodes(raw.ID).all(raw.Deps) {
		info.Dependencies = append(info.Dependencies, CaptureDependency{n, publicEdge(raw.Edges[i])})
	}
	return info, nil
}

// foreignCapture is what is known of the nodes of a capture that another library has begun.
type foreignCapture struct {
	id    uint64
	nodes nodeTable
}

// capturedNodes knows the nodes of the capture that s is in, whose id is given.
func (s *Stream) capturedNodes(id uint64) *nodeTable {
	if c := s.capture(); c != nil {
		return c.nodes
	}
	known := s.foreign.Load()
	for known == nil || known.id != id {
		s.foreign.CompareAndSwap(known, &foreignCapture{id: id})
		known = s.foreign.Load()
	}
	return &known.nodes
}

// CaptureInfo tells of the capture, as Stream.CaptureInfo does.
func (b *GraphBuilder) CaptureInfo() (CaptureInfo, error) {
	const op = "GraphBuilder.CaptureInfo"
	if _, err := b.building(op); err != nil {
		return CaptureInfo{}, err
	}
	if err := b.stream.begin(op); err != nil {
		return CaptureInfo{}, err
	}
	defer b.stream.end()
	return b.stream.captureInfo(op)
}

// AddDependencies has the next node depend on more nodes of the graph being built (CONTRACT CP-07). Needs CUDA 12.3.
// cuStreamUpdateCaptureDependencies.
func (b *GraphBuilder) AddDependencies(deps ...CaptureDependency) error {
	return b.updateDependencies("GraphBuilder.AddDependencies", deps, driver.CaptureAddDependencies)
}

// SetDependencies has the next node depend on just these nodes of the graph being built; on none, it begins a branch. Needs
// CUDA 12.3. cuStreamUpdateCaptureDependencies.
func (b *GraphBuilder) SetDependencies(deps ...CaptureDependency) error {
	return b.updateDependencies("GraphBuilder.SetDependencies", deps, driver.CaptureSetDependencies)
}

func (b *GraphBuilder) updateDependencies(op string, deps []CaptureDependency, flags uint32) error {
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.updateDependencies(op, deps, flags)
}

// UpdateCaptureDependencies adds to, or sets, what the next node captured on s depends on, for a capture that another library
// has begun on s; see GraphBuilder.AddDependencies and SetDependencies. It is ErrIllegalState if s is not capturing.
func (s *Stream) UpdateCaptureDependencies(set bool, deps ...CaptureDependency) error {
	flags := driver.CaptureAddDependencies
	if set {
		flags = driver.CaptureSetDependencies
	}
	return s.updateDependencies("Stream.UpdateCaptureDependencies", deps, flags)
}

func (s *Stream) updateDependencies(op string, deps []CaptureDependency, flags uint32) error {
	if err := s.begin(op); err != nil {
		return err
	}
	defer s.end()
	info, err := s.activeCapture(op)
	if err != nil {
		return err
	}
	known := s.capturedNodes(info.ID)
	nodes, edges := make([]driver.GraphNode, len(deps)), make([]driver.EdgeData, len(deps))
	for i, d := range deps {
		n, err := known.get(op, nodeArgument(i, len(deps)), d.Node)
		if err != nil {
			return err
		}
		nodes[i] = n.raw
		edges[i] = d.Edge.raw()
	}
	return s.continueBehind(op, nodes, edges, flags)
}

// continueBehind has what is captured next depend on nodes.
func (s *Stream) continueBehind(op string, nodes []driver.GraphNode, edges []driver.EdgeData, flags uint32) error {
	r := s.driver().StreamUpdateCaptureDependencies(s.ctx.raw, s.raw, nodes, edges, flags)
	return s.captureResult(op, r, "cuStreamUpdateCaptureDependencies")
}

// activeCapture is what the driver knows of the capture that s is in, which must be in order.
func (s *Stream) activeCapture(op string) (driver.CaptureInfo, error) {
	info, r := s.driver().StreamGetCaptureInfo(s.ctx.raw, s.raw)
	switch {
	case r != driver.Success:
	case info.Status == driver.CaptureNone:
		r = driver.ErrorIllegalState
	case info.Status == driver.CaptureInvalidated:
		r = driver.ErrorStreamCaptureInvalidated
	}
	return info, s.captureResult(op, r, "cuStreamGetCaptureInfo")
}

// captureResult is needs with a reason for what calls about captures are refused with.
func (s *Stream) captureResult(op string, r driver.Result, function string) error {
	switch r {
	case driver.ErrorIllegalState:
		return s.ctx.resultf(op, r, "the stream is not capturing")
	case driver.ErrorStreamCaptureImplicit:
		return s.ctx.resultf(op, r, "a blocking stream of the context is capturing, and the legacy default stream cannot be used meanwhile")
	}
	return s.ctx.needs(op, r, function, "")
}
